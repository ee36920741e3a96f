#!/usr/bin/env bash
# package.sh - host applications, built out of tree against the installed package as the pages say.
#
#   package.sh zoo|refusals|jit|graph|serving|block|ring SOURCE PREFIX WORK
#
# SOURCE is flashgen's, PREFIX where it is installed, WORK a directory of the test's own. CC, CXX and
# CFLAGS are the build's. Runs on the host device, or on FLASHGEN_TEST_DEVICE; 77 where that or what
# the step needs is not there, unless FLASHGEN_REQUIRE names `host` and the host device is meant.
set -euo pipefail
step=$1 source=$2 prefix=$3 work=$4
device=${FLASHGEN_TEST_DEVICE:-host}
unset FLASHGEN_TEMPLATES FLASHGEN_JIT FLASHGEN_PLAN FLASHGEN_VERBOSE FLASHGEN_CACHE_RO
loader_path=${LD_LIBRARY_PATH:-} # where a driver may be
rm -rf "$work" && mkdir -p "$work" && cd "$work"

die() { echo "package.sh $step: $*" >&2; exit 1; }
skip() {
  echo "package.sh $step: $*" >&2
  case $device,${FLASHGEN_REQUIRE:-} in host,*host* | cuda*,*gpu*) exit 1 ;; esac
  exit 77
}
# says TEXT COMMAND...: the command succeeds and prints the text.
says() {
  local text=$1 out
  shift
  out=$("$@" 2>&1) || die "$*: $out"
  [[ $out == *"$text"* ]] || die "$* printed: $out; expected: $text"
}
# fails TEXT COMMAND...: with this text.
fails() {
  local text=$1 out
  shift
  ! out=$("$@" 2>&1) || die "$* succeeds: $out"
  [[ $out == *"$text"* ]] || die "$* printed: $out; expected: $text"
}

# The package works wherever it is moved to.
cp -a "$prefix" "$work/moved prefix"
prefix="$work/moved prefix"
libdir=$(dirname "$(find "$prefix" -name libflashgen.so)")
export PATH="$prefix/bin:$PATH" LD_LIBRARY_PATH="$libdir:$loader_path" FLASHGEN_CACHE="$work/cache"
cp "$source"/tests/consumer/{*.c,*.h,*.cpp,*.py} .
flags() { # what pkg-config says, and the sanitizers of the build
  PKG_CONFIG_PATH="$libdir/pkgconfig" pkg-config "$@" flashgen
}
cc() { command "${CC:-cc}" ${CFLAGS:-} "$@"; }
# As the page writes it; the prefix has a space in it, which pkg-config escapes for `eval`.
page_line() {
  local line=${1//'$(pkg-config --cflags --libs flashgen)'/$(flags --cflags --libs)}
  eval "$line"
}

# blocks PAGE: each fenced block of a page of the documentation, to block.1, block.2, ...
blocks() {
  awk '
    /^```[a-z]/ { n++; inside = 1; next }
    /^```$/ { inside = 0; next }
    inside { print > ("block." n) }' "$source/$1"
  [ -f block.1 ] || die "$1 has no block"
}
# block_with TEXT: the file of the block that has it.
block_with() {
  grep -l -- "$1" block.* | head -n 1
}
# shown_in BLOCK FILE: the program has every line that the page shows of it.
shown_in() {
  local line n=0
  while read -r line; do
    [ -n "$line" ] || continue
    grep -qF -- "$line" "$2" || die "$2 has not the page's line: $line"
    n=$((n + 1))
  done <"$1"
  [ $n -gt 0 ] || die "$1 is empty"
}

if [ "$device" != host ]; then
  flashgen build head_dim=64 -q -o probe --device "$device" >/dev/null 2>probe.err || skip "$(cat probe.err)"
  archs=$(sed -n 's/^variant .*\.//p' probe/manifest.txt | head -n 1)
else
  archs="host sm_80 sm_90a"
  flashgen build head_dim=8 family=simt --arch sm_80 -q -o probe >/dev/null 2>&1 || archs=host # no NVRTC
fi

# ---- a zoo at build time ----

# ninja_says TEXT: what the build prints next holds it.
ninja_says() { says "$1" cmake --build app/build -v; }
# linked: whether the program was linked again since the last call.
linked() {
  local now
  now=$(stat -c %.9Y.%i app/build/embedded)
  [ "$now" != "${was:-}" ] && was=$now
}

# Without flashgen's own files, but for the library; without a compiler, NVRTC and Lua.
runs_alone() {
  mkdir -p alone
  cp -L "$libdir/libflashgen.so.0.1" alone/
  cp "$1" alone/program
  (
    cd alone
    says "2 kernels of the program, 0 compiled: right" env -i LD_LIBRARY_PATH="$work/alone:$loader_path" \
      PATH=/nonexistent FLASHGEN_CC=/nonexistent FLASHGEN_NVRTC=/nonexistent \
      FLASHGEN_CACHE=/nonexistent ./program "$device"
    says "/alone/libflashgen.so.0.1" env LD_LIBRARY_PATH="$work/alone" ldd ./program
    [ -z "$(env LD_LIBRARY_PATH="$work/alone" ldd ./program | grep -E 'lua|nvrtc|libflashgen-gen')" ] ||
      die "the program is linked with more than libflashgen.so"
  )
}

zoo() {
  blocks runtime/docs/tutorials/zoo.md
  mkdir app
  cp embedded.c device.h app/
  cp block.1 app/kernels.lua
  sed "s/sm_80 sm_90a/$archs/" block.2 >app/CMakeLists.txt
  shown_in block.3 embedded.c
  grep -q "ARCHS $archs EMBED" app/CMakeLists.txt || die "the page names other archs"

  # with CMake
  cmake -S app -B app/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="${CC:-cc}" -DCMAKE_C_FLAGS="${CFLAGS:-}" >configure.log || die "$(cat configure.log)"
  local n=0 arch
  for arch in $archs; do n=$((n + 2)); done
  ninja_says "$n made, 0 kept"
  linked || die "it was not linked"
  says "2 kernels of the program, 0 compiled: right" app/build/embedded "$device"
  runs_alone app/build/embedded
  ninja_says "no work to do"

  # what depends on a spec is made again, and nothing else
  echo '-- a remark' >>app/kernels.lua
  ninja_says "$n variants, nothing to do"
  linked && die "it was linked again though no kernel changed"
  sed -i 's/"causal"/{ "causal", "full" }/' app/kernels.lua
  ninja_says "$n made, $n kept"
  linked || die "it was not linked with the new kernels"
  says "2 kernels of the program, 0 compiled: right" app/build/embedded "$device"
  ninja_says "no work to do"

  # on a template of one's own, and on flashgen
  cp -r "$source/templates" app/templates
  sed -i 's/ EMBED)/ TEMPLATES templates FILTER *attn_*-causal.* EMBED)/' app/CMakeLists.txt
  ninja_says "$n removed"
  linked || die "it was not linked without the kernels that are gone"
  for file in app/templates/attention/*/backward.cut; do echo '// a remark' >>"$file"; done
  ninja_says "$((n / 2)) made, $((n / 2)) kept"
  linked || die "it was not linked with the changed kernels"
  ninja_says "no work to do"
  touch "$prefix/bin/flashgen"
  ninja_says "$n variants, nothing to do"
  linked && die "it was linked again though no kernel changed"
  echo 'return {' >app/kernels.lua
  fails "kernels.lua:" cmake --build app/build

  # one file: neither libflashgen.so nor anything else of flashgen's
  cp block.1 app/kernels.lua
  sed -i 's/ TEMPLATES .* EMBED)/ EMBED STATIC)/' app/CMakeLists.txt
  cmake --build app/build >build.log || die "$(cat build.log)"
  mkdir one
  mv app/build/embedded one/
  says "2 kernels of the program, 0 compiled: right" env -i LD_LIBRARY_PATH="$loader_path" PATH=/nonexistent \
    FLASHGEN_NVRTC=/nonexistent FLASHGEN_CC=/nonexistent one/embedded "$device"
  ! ldd one/embedded | grep -E 'lua|nvrtc|flashgen' || die "it is not one file"

  # without CMake
  cp block.1 kernels.lua
  while read -r line; do page_line "${line/sm_80,sm_90a/${archs// /,}}"; done <"$(block_with '--embed kernels')"
  says "2 kernels of the program, 0 compiled: right" ./embedded "$device"
  cat >main.cpp <<<'#include "kernels.h"
int main() { return kernels.size != sizeof(fg_zoo); }'
  cc -c zoo/kernels.c -Izoo -I"$prefix/include"
  eval "${CXX:-c++} ${CFLAGS:-} main.cpp kernels.o -Izoo $(flags --cflags --libs) -o main" && ./main
  [ ! -e "$FLASHGEN_CACHE" ] || die "the cache was used"
}

# A directory of kernels, for a program that is shipped with it; and what is refused.
refusals() {
  # what comes with the package besides code
  local doc="$prefix/share/doc/flashgen" file
  for file in licenses/LICENSE licenses/xxhash.txt index.md reference/{masks.md,kinds/attention.md,commands/draw.md}; do
    [ -s "$doc/$file" ] || die "$file is not installed"
  done
  mkdir dir
  cat >dir/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(dir LANGUAGES NONE)
find_package(flashgen 0.1 CONFIG REQUIRED)
flashgen_add_zoo(kernels SPECS head_dim=8 family=simt \${flashgen_SPECS}/quickstart.lua \${MORE})
END
  local configure=(cmake -S dir -B dir/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix")
  fails "it needs SPECS and ARCHS" "${configure[@]}"
  fails "EMBED needs the project's language C" "${configure[@]}" "-DMORE=ARCHS;host;EMBED"
  fails "STATIC is for EMBED" "${configure[@]}" "-DMORE=ARCHS;host;STATIC"
  fails "not understood: PLAN" "${configure[@]}" "-DMORE=ARCHS;host;FILTER;*;PLAN;1"
  says "" "${configure[@]}" "-DMORE=ARCHS;host;FILTER;attn_fwd-*-causal.*"
  says "variant: " cmake --build dir/build -v
  [ -n "$(ls dir/build/kernels.zoo/attn_fwd-*-causal.*.host.so)" ] || die "no kernel was made"
}

# ---- JIT inside an application ----

jit() {
  local line out
  blocks runtime/docs/doors/c.md
  shown_in "$(block_with 'argv\[1\]')" jit.c
  while read -r line; do
    case $line in
      ./*) says "1 compiled" page_line "$line $device"; says "0 compiled" page_line "$line $device" ;;
      *) page_line "$line" ;;
    esac
  done <"$(block_with '^cc jit.c')"
  # where all scores are equal the output is the mean, where they are not it is not
  out=$(./jit '0.0 * s' "$device") || die "$out"
  awk 'NR > 1 { sub(",", "", $2); if (($1 - $4) ^ 2 > 1e-5 || ($2 - $5) ^ 2 > 1e-5) exit 1 }' <<<"$out" ||
    die "no mean: $out"
  out=$(./jit '30.0 * s' "$device") || die "$out"
  awk 'NR > 1 { sub(",", "", $2); if (($1 - $4) ^ 2 < 1e-5 && ($2 - $5) ^ 2 < 1e-5) exit 1 }' <<<"$out" ||
    die "the mean: $out"
  says "0 compiled" ./jit 's * 30.0' "$device" # the same kernel, spelled otherwise
  fails "expected a value, found the end" ./jit 's +' "$device"
  fails "did you mean \"softcap\"" ./jit 'sofcap(s, 30.0)' "$device"
}

# ---- C++ ----

graph() {
  "${CXX:-c++}" --version >/dev/null 2>&1 || skip "there is no C++ compiler"
  eval "${CXX:-c++} -std=c++17 -Wall -Wextra -pedantic -Werror ${CFLAGS:-} graph.cpp $(flags --cflags --libs) -o graph"
  says "3 replays, each with the bits of a launch" ./graph "$device"
}

serving() {
  local line
  blocks runtime/docs/doors/serving.md
  shown_in "$(block_with '^launch.*&attend')" serving.c
  CFLAGS="${CFLAGS:-} -std=c11 -Wall -Wextra -pedantic -Werror"
  while read -r line; do
    case $line in
      ./*) says "9 requests in 25 steps" page_line "$line $device" ;;
      *) page_line "$line" ;;
    esac
  done <"$(block_with '^cc serving.c')"
}

# Its page's lines; and that its judge finds a residual without a gradient.
block() {
  local line python
  for python in python3 /usr/bin/python3 none; do
    command "$python" -c 'import numpy' 2>/dev/null && break
  done
  [ "$python" != none ] || skip "no python3 has NumPy"
  python3() { command "$python" -B "$@"; }
  blocks tests/consumer/README.md
  CFLAGS="${CFLAGS:-} -std=c11 -Wall -Wextra -pedantic -Werror"
  page_line "$(head -n 1 block.1)"
  page_line "$(sed -n 's/cuda:0/$device/; 2p' block.1)"
  says " ms" page_line "$(sed 's/cuda:0 1024 2 512/$device 512 1 8/; s/20$/1/' block.2)"
  sed 's/\.dx_more = dz2, //' block.c >partial.c
  ! cmp -s block.c partial.c || die "the residual's gradient is not where it was"
  page_line 'cc partial.c $(pkg-config --cflags --libs flashgen) -o partial'
  fails "dgamma1" python3 block.py ./partial "$device"
}

# Its page's lines on the host device, or on as many GPUs as the machine has, 2 at least; and that a ring is found that takes the
# wrong chunk of keys or rows, or lets messages overwrite what it computes with.
ring() {
  local where=host ranks=3 line
  if [ "$device" != host ]; then
    where=cuda ranks=$(nvidia-smi -L | wc -l)
    [ "$ranks" -ge 2 ] || skip "a ring needs two GPUs"
  fi
  blocks tests/consumer/README.md
  CFLAGS="${CFLAGS:-} -std=c11 -Wall -Wextra -pedantic -Werror"
  page_line "$(sed -n 1p block.3)"
  line=$(sed -n 2p block.3)
  says "dv differs" page_line "${line/cuda 2 65536 16 16 20 8/$where $ranks $((ranks * 64)) 4 2 1 1}"
  says "dv differs" ./ring "$where" 1 64 2 2
  [ "$where" = cuda ] || says "dv differs" ./ring host 4 256 2 1
  fails "is not a multiple of 2 RANKS" ./ring "$where" 2 66 2 2
  local mistake
  for mistake in 's/ring.rank ? FIRST : BOTH/ring.rank ? SECOND : BOTH/' 's/ring.rank ? SECOND : BOTH/ring.rank ? FIRST : BOTH/' \
    's/kv\[1 + (step + 1) % 2\]/kv[1 + step % 2]/' 's/data_of(&dkv_sum, 0), 2 \*/data_of(\&dkv_sum, 1), 2 */'; do
    sed "$mistake" ring.c >lost.c
    ! cmp -s ring.c lost.c || die "nothing to mistake: $mistake"
    page_line 'cc lost.c $(pkg-config --cflags --libs flashgen) -lm -pthread -o lost'
    fails "it is not what one launch gives" ./lost "$where" 2 128 2 2
  done
}

$step
