// graph.cpp - attention in a CUDA graph: the kernel is selected once, its launch captured, and the
// graph replayed with other values in the same tensors.
//
//   graph [cuda:N|host]
//
// Each replay gives the bits of a plain launch. The host device has no graphs: there a plain launch
// stands for the replay.
#include "device.h"

#include <cstdio>
#include <flashgen.h>
#include <vector>

namespace {

constexpr int H = 4, N = 100, D = 64, count = N * H * D;
const fg_shape shape = [] {
  fg_shape s = FG_INIT(fg_shape);
  s.b = 1, s.h = s.hk = H, s.nq = s.nk = N;
  return s;
}();

void check(fg_status status) {
  if (status != FG_OK) device_die(fg_error());
}

// A stream, and what is recorded of it; on the host device neither.
class Graph {
public:
  template <class Work> void record(Work work) {
    device_capture(stream);
    work(stream);
    recorded = device_captured(stream);
  }
  void replay() { device_replay(recorded, stream); }
  void *const stream = device_stream();

private:
  void *recorded = nullptr;
};

using Bits = std::vector<uint16_t>;

Bits random_bits() {
  Bits bits(count);
  for (auto &x : bits) x = to_bf16(static_cast<float>(rand() % 2001 - 1000) / 500.0f);
  return bits;
}

void write(void *to, const Bits &bits) {
  device_write(to, bits.data(), bits.size() * sizeof bits[0]);
}

Bits read(const void *from) {
  Bits bits(count);
  device_read(bits.data(), from, bits.size() * sizeof bits[0]);
  return bits;
}

fg_tensor tensor() {
  return {device_new(random_bits().data(), count * sizeof(uint16_t)), {count, D, H * D, 1}};
}

} // namespace

int main(int argc, char **argv) {
  fg_config config = FG_INIT(fg_config);
  config.device = argc > 1 ? argv[1] : "host";
  device_open(config.device);
  fg_context *context;
  check(fg_open(&config, &context));

  fg_spec spec = FG_INIT(fg_spec);
  spec.head_dim = "64", spec.mask = "causal";
  fg_op *op;
  check(fg_define(context, &spec, &op));

  Graph graph;
  fg_kernel *kernel;
  check(fg_select(op, &shape, graph.stream, &kernel)); // compiles and loads: not while capturing

  fg_args args = FG_INIT(fg_args);
  args.q = tensor(), args.k = tensor(), args.v = tensor(), args.o = tensor();
  args.lse.data = device_new(nullptr, sizeof(float) * H * N);
  void *workspace = device_new(nullptr, fg_workspace_bytes(kernel, &shape));

  const auto launch = [&](void *stream) {
    fg_kernel *same; // hot, so that it may be asked again
    check(fg_select(op, &shape, stream, &same));
    if (same != kernel) device_die("another kernel was selected");
    check(fg_launch(kernel, &shape, &args, workspace, stream));
  };
  if (device.driver) graph.record(launch);

  Bits before;
  for (int round = 0; round < 3; round++) {
    write(args.q.data, random_bits());
    write(args.o.data, Bits(count));
    device.driver ? graph.replay() : launch(nullptr);
    const Bits replayed = read(args.o.data);
    write(args.o.data, Bits(count));
    launch(graph.stream);
    if (read(args.o.data) != replayed) device_die("a replay differs from a launch");
    if (replayed == before) device_die("a replay has not seen the new values");
    before = replayed;
  }
  std::printf("%s: 3 replays, each with the bits of a launch\n",
              device.driver ? "a CUDA graph" : "no graph on the host device");
  fg_close(context);
}
