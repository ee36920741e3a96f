#!/usr/bin/env bash
# gpu.sh - what is claimed of a GPU, tried again on one: first that it is right, then how fast.
#
#   tests/bench/gpu.sh BUILD OUT [PART...]
#
# BUILD is a build folder, or what is run of it on a machine that cannot build: flashgen, the shared libraries, tests/.
# Each part leaves OUT/PART.log; a table of how they ended comes last. All parts, with what they take on an H200:
#
#   suites    the suites of all families' kernels, in 8 parts each at once              320 s
#   hang      wgmma beside a full card, on two streams, under a graph; 100 repeats       60 s, best alone
#   soak      random specs and shapes beside simt for 180 s, and 100 repeats            270 s, best alone
#   sanitize  wgmma under compute-sanitizer: synccheck, racecheck, memcheck             180 s
#   compile   seconds to compile, the least of 3; registers, spills                      80 s, best alone
#   overhead  what a launch, a selection, a warm and a cold start cost                   10 s, best alone
#   forward   beside cuDNN and FlashAttention-2 at 36 cells; GQA, d 96 and 192, f16,
#             and at the card's power                                                  130 s
#   mma       the same of mma, both passes                                              180 s
#   hooks     masks, scores and gradients beside FlexAttention                          180 s
#   rows      norms and losses of rows beside a copy and torch.compile                   not timed yet
#   linear    linear layers beside the plain product of PyTorch                          not timed yet
#   slices    masks that are lists of slices beside the plain kernel                     not timed yet
#   context   context parallelism on two GPUs: that it is right, and beside one GPU      not timed yet
set -u
build=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2")
cd "$(dirname "$0")/../.." || exit
shift 2
parts=("$@")
[ $# -gt 0 ] || parts=(suites hang soak sanitize compile overhead forward mma hooks rows linear slices context)
library=$build/libflashgen.so
export LD_LIBRARY_PATH=$build:${LD_LIBRARY_PATH:-} FLASHGEN_TEST_DEVICE=cuda:0 FLASHGEN_REQUIRE=gpu CK_FORK=no

run_suites() {
  local failed=0 suite part
  rm -f "$out"/suite-*.log
  for suite in t_simt_forward t_simt_backward t_mma_forward t_mma_backward t_wgmma_forward \
    t_wgmma_backward; do
    for part in 1 2 3 4 5 6 7 8; do
      FLASHGEN_TEST_CASES=$((part - 1))%8 timeout 300 "$build/tests/$suite" >"$out/suite-$suite-$part.log" 2>&1 &
    done
    wait
  done
  for suite in t_wgmma_run t_parts t_wgmma_sass t_tma_run t_gpu t_gpu_app; do
    timeout 120 "$build/tests/$suite" >"$out/suite-$suite.log" 2>&1
  done
  for suite in t_linear t_linear_wgmma t_layernorm t_logsoftmax t_slices; do
    timeout 300 "$build/tests/$suite" >"$out/suite-$suite.log" 2>&1 &
  done
  wait
  grep -aE '^[0-9]+%|:[FE]:' "$out"/suite-*.log
  for part in "$out"/suite-*.log; do grep -qa '^100%' "$part" || failed=1; done
  return $failed
}
run_hang() { timeout 300 "$build/tests/t_hang" && timeout 300 "$build/tests/t_claims"; }
run_soak() {
  FLASHGEN_SOAK_SECONDS=90 "$build/tests/t_soak" &&
    FLASHGEN_SOAK_SECONDS=90 FLASHGEN_SOAK_FAMILY=wgmma FLASHGEN_SOAK_PASS=backward "$build/tests/t_soak"
}
run_sanitize() {
  local tool words
  for tool in synccheck racecheck memcheck; do
    for words in "head_dim=40,64,128,256 mask=full,causal" "head_dim=64,128 bias=true bias_dims=[h,q,k]"; do
      compute-sanitizer --tool $tool --error-exitcode 9 "$build/flashgen" check family=wgmma pass=forward \
        $words --device cuda:0 -q -j 1 || return 1
    done
    for words in "head_dim=40,64 mask=full,window(40,3)" "head_dim=128,192/128 mask=causal" \
      "head_dim=64 score=softcap(5.0)" "head_dim=64,256 bias=grad bias_dims=[h,q,k]" \
      "head_dim=64 score=relative(t) inputs.t=f32[h,nq+nk-1]grad"; do
      compute-sanitizer --tool $tool --error-exitcode 9 "$build/flashgen" check family=wgmma pass=backward \
        --plans all $words b=1 h=2 hk=1 nq=150 nk=200 --device cuda:0 -q -j 1 || return 1
    done
    for words in "head_dim=64 mask=causal pass=forward" "head_dim=128 pass=backward"; do
      compute-sanitizer --tool $tool --error-exitcode 9 "$build/flashgen" check slices=true family=wgmma $words \
        b=1 h=2 hk=1 nq=300 nk=200 --device cuda:0 -q -j 1 || return 1
    done
    for words in "epilogue=layernorm residual=true width=16/328,16/744,16/1480" "epilogue=relu,gelu width=72/328" \
      "pass=backward epilogue=gelu,layernorm width=72/328"; do
      compute-sanitizer --tool $tool --error-exitcode 9 "$build/flashgen" check kernel=linear family=wgmma bias=true \
        --plans all $words rows=300 --device cuda:0 -q -j 1 || return 1
    done
  done
  compute-sanitizer --tool memcheck --error-exitcode 9 "$build/tests/t_parts"
}
run_compile() {
  "$build/tests/compile_time" sm_80,sm_90a 1 1 3 family=mma pass=forward,backward head_dim=64,128,256 mask=full,causal &&
    "$build/tests/compile_time" sm_90a 1 1 3 family=wgmma pass=forward,backward head_dim=64,96,128,192,256 \
      mask=full,causal &&
    "$build/tests/compile_time" sm_90a 1 1 3 family=wgmma head_dim=64,96,128,192,256 key_parts=16
}
run_overhead() { "$build/tests/overhead"; }
run_forward() {
  local peers=(python3 -B tests/bench/peers.py --library "$library" --passes fwd)
  "${peers[@]}" --json "$out/forward.json" &&
    "${peers[@]}" --peers cudnn --dims 96,192,192/128 --lengths 4096,8192 &&
    "${peers[@]}" --peers cudnn --dims 128 --heads 32/8 --lengths 2048,8192 &&
    "${peers[@]}" --peers cudnn --dims 64,128,256 --lengths 4096 --also f16 || return 1
  # Launches at the card's power: its clock falls within the 25 of a measurement, or does not, so one says little
  # (templates/attention/wgmma/forward_plans.lua); then what they sustain.
  for _ in 1 2 3 4 5; do
    "${peers[@]}" --peers cudnn --dims 256 --masks full --lengths 16384 || return 1
  done
  "${peers[@]}" --peers cudnn --dims 256 --masks full --lengths 8192,16384 --sustained
}
run_mma() {
  python3 -B tests/bench/peers.py --library "$library" --family mma --lengths 1024,4096,16384 --json "$out/mma.json"
}
run_hooks() {
  local hooks=(python3 -B tests/bench/hooks.py --library "$library")
  "${hooks[@]}" --family mma --json "$out/hooks-mma.json" &&
    "${hooks[@]}" --family wgmma --passes fwd --hooks softcap@8192,alibi@8192,window@8192,bias@4096 \
      --json "$out/hooks-wgmma.json"
}
run_rows() { python3 -B tests/bench/rows.py --program "$build/flashgen" --json "$out/rows.json"; }
run_slices() { python3 -B tests/bench/slices.py --library "$library" --dims 64,128,192/128 --json "$out/slices.json"; }
run_context() { # where there are two GPUs
  python3 -c 'import sys, torch; sys.exit(torch.cuda.device_count() < 2)' || { echo "one GPU: skipped"; return 0; }
  export FLASHGEN_LIBRARY=$library PYTHONPATH=runtime/python NCCL_CGA_CLUSTER_SIZE=0
  python3 -B tests/python/test_context_parallel.py && python3 -B tests/python/test_context_faults.py &&
    python3 -B -m torch.distributed.run --standalone --nproc-per-node 2 tests/bench/context_parallel.py --json "$out/context.json"
}
run_linear() { python3 -B tests/bench/linear.py --program "$build/flashgen" --compiled --json "$out/linear.json"; }

table=() worst=0
for part in "${parts[@]}"; do
  declare -F "run_$part" >/dev/null || { echo "gpu.sh: there is no part '$part'" >&2; exit 2; }
done
for part in "${parts[@]}"; do
  begin=$SECONDS
  if "run_$part" >"$out/$part.log" 2>&1; then said=ok; else said=FAILED worst=1; fi
  echo "---- $part"
  tail -n 40 "$out/$part.log"
  table+=("$(printf '%-9s %-6s %4d s' "$part" "$said" $((SECONDS - begin)))")
done
echo "----"
printf '%s\n' "${table[@]}"
exit $worst
