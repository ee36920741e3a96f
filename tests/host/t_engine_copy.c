/* t_engine_copy.c - copies of shared memory between the blocks of a cluster: what right kernels get
 * under every seed, and what wrong ones are told. */
#include "engine_bar.h"

static void cluster_sync(void) {
  api->cluster_arrive();
  api->cluster_wait();
}

/* Of a block of two: 32 words of its own, fenced, for the other's words from 64 on. */
static void prepare(int fenced) {
  make(0, 1);
  if (tid() < 32) put(tid(), 100 * api->block_index.x + tid());
  if (fenced) api->fence_async();
  cluster_sync();
}

static void send(u32 word, u32 from, int bytes, int expected) {
  if (tid()) return;
  api->mbarrier_expect(bar(0), expected);
  api->bulk_copy_remote(at(word), at(from), bytes, bar(0), 1 - api->cluster_rank());
}

/* ---- right ---- */

/* Blocks exchange their words, change them and do so again: who has the other's tells it. */
static void exchange(const void *p) {
  const tensors *t = p;
  int other = 1 - api->cluster_rank();
  make(1, 64);
  prepare(1);
  send(64, 0, 128, 128);
  api->mbarrier_wait(bar(0), 0);
  u32 x = get(64 + lane());
  api->mbarrier_arrive_remote(bar(1), other);
  api->mbarrier_wait(bar(1), 0);
  if (tid() < 32) put(tid(), x + 1000);
  api->fence_async();
  sync_all();
  send(64, 0, 128, 128);
  api->mbarrier_wait(bar(0), 1);
  if (tid() < 32) keep(t->out + 32 * api->block_index.x + tid(), (float)get(64 + tid()));
  cluster_sync();
}

static float of_exchange(u32 i) { return (float)(1000 + i / 32 * 100 + i % 32); }

TEST(right_kernel) { case_right((case_fine){{exchange, 64, 2}, of_exchange, {.cluster = 2}}); }

/* Blocks that wait for what they have asked for, so that others begin. */
static void waits(const void *p) {
  const tensors *t = p;
  make(0, 1);
  cluster_sync();
  if (tid() == 0) api->mbarrier_expect(bar(0), 128);
  if (tid() == 0) api->bulk_load(at(8), t->in, 128, bar(0));
  api->mbarrier_wait(bar(0), 0);
  cluster_sync();
}

/* The barriers of a launch are gone in the next one, where seats lie elsewhere. */
TEST(launches_with_other_clusters) {
  for (u64 seed = 0; seed < SEEDS; seed++) {
    fg_host_memory *memory = case_make(seed);
    for (u32 cluster = 4; cluster > 0; cluster /= 2) {
      case_extra = (case_extras){cluster, 0, cluster == 1 ? 4 : 2};
      ck_assert_msg(case_launch((job){waits, 64, 16}, seed, memory) == FG_OK, "cluster %u: %s",
                    cluster, fault.text);
    }
    case_drop(memory);
  }
}

/* ---- wrong ---- */

static void sent(void) {
  api->mbarrier_wait(bar(0), 0);
  get(64 + lane());
  cluster_sync();
}

static void sent_unfenced(const void *p) {
  prepare(0);
  send(64, 0, 128, 128);
  sent();
}

static void sent_unmet(const void *p) {
  prepare(1);
  if (tid() == 40) put(2, 7);
  api->fence_async();
  send(64, 0, 128, 128);
  sent();
}

static void sent_unexpected(const void *p) {
  prepare(1);
  if (tid() == 0) api->bulk_copy_remote(at(64), at(0), 128, bar(0), 1 - api->cluster_rank());
  sent();
}

static void received_early(const void *p) {
  prepare(1);
  send(64, 0, 128, 128);
  get(64 + lane());
  sent();
}

static void changed_early(const void *p) {
  prepare(1);
  send(64, 0, 128, 128);
  api->mbarrier_wait(bar(0), 0);
  if (tid() >= 32) put(lane(), 1);
  cluster_sync();
}

/* What the other block reads is written over. */
static void sent_over_reads(const void *p) {
  prepare(1);
  send(64, 0, 128, 128);
  api->mbarrier_wait(bar(0), 0);
  get(64 + lane());
  sync_all();
  send(64, 0, 128, 128);
  api->mbarrier_wait(bar(0), 1);
  cluster_sync();
}

static void sent_to_ended(const void *p) {
  prepare(1);
  if (api->cluster_rank()) return;
  for (int i = 0; i < 2000; i++) api->mbarrier_try(bar(0), 0);
  send(64, 0, 128, 128);
}

static void receiver_ends(const void *p) {
  prepare(1);
  if (api->cluster_rank()) return;
  if (tid() == 0) api->bulk_copy_remote(at(64), at(0), 128, bar(0), 1);
  cluster_sync();
}

static void sender_ends(const void *p) {
  prepare(1);
  if (api->cluster_rank() == 0 && tid() == 0) api->bulk_copy_remote(at(64), at(0), 128, bar(0), 1);
  if (api->cluster_rank() == 0) return;
  if (tid() == 0) api->mbarrier_expect(bar(0), 128);
  api->mbarrier_wait(bar(0), 0);
}

static void send_as(u32 to, u32 from, int bytes, int rank) {
  prepare(1);
  if (tid() == 0) api->mbarrier_expect(bar(0), bytes);
  if (tid() == 0) api->bulk_copy_remote(at(to), at(from), bytes, bar(0), rank);
  api->mbarrier_wait(bar(0), 0);
  cluster_sync();
}

static void no_such_block(const void *p) { send_as(64, 0, 128, 2); }
static void sent_askew(const void *p) { send_as(64, 1, 16, 0); }
static void sent_to_askew(const void *p) { send_as(66, 0, 16, 0); }
static void sent_odd_bytes(const void *p) { send_as(64, 0, 8, 0); }
static void sent_unwritten(const void *p) { send_as(64, 16, 128, 0); }

static void no_barrier_there(const void *p) {
  if (api->cluster_rank() == 0) make(0, 1);
  if (tid() < 32) put(tid(), 1);
  api->fence_async();
  cluster_sync();
  if (api->cluster_rank() == 0 && tid() == 0) api->bulk_copy_remote(at(64), at(0), 128, bar(0), 1);
  cluster_sync();
}

static const case_fault wrong[] = {
    {{sent_unfenced, 64, 2},
     "bulk_copy_remote at shared byte 0, which thread 0 stored without a fence_async after it *"},
    {{sent_unmet, 64, 2},
     "bulk_copy_remote at shared byte 8, which thread 40 stored without a fence_async after it *|"
     "race: shared * at byte 8, which *"},
    {{sent_unexpected, 64, 2}, "deadlock: *0 of 1 arrivals have come, -128 bytes have not*"},
    {{received_early, 64, 2},
     "shared load at byte * while TMA for the mbarrier at byte 1024 is still filling it *|shared "
     "load at byte *, which was never written *|race: shared load at byte *, which TMA for *"},
    {{changed_early, 64, 2},
     "race: shared store at byte *, which a bulk_copy_remote *|race: shared store at byte *, which "
     "* lanes of warp * read*"},
    {{sent_over_reads, 64, 2},
     "race: shared bulk_copy_remote at byte *, which * read*|shared bulk_copy_remote at byte * "
     "while TMA for * is still filling it *|race: shared bulk_copy_remote at byte *, which TMA for "
     "* wrote: *"},
    {{sent_to_ended, 32, 2},
     "bulk_copy_remote at shared byte 1024 of block 1 of the cluster, which has ended *"},
    {{no_such_block, 32, 2}, "bulk_copy_remote: there is no block 2 in the cluster *"},
    {{sent_askew, 32, 2}, "bulk_copy_remote misaligned: shared byte 4, *, not a multiple of 16 *"},
    {{sent_to_askew, 32, 2}, "bulk_copy_remote misaligned: shared byte 264, *"},
    {{sent_odd_bytes, 32, 2}, "bulk_copy_remote of 8 bytes: want a multiple of 16 *"},
    {{sent_unwritten, 32, 2}, "shared bulk_copy_remote at byte 128, which was never written *"},
    {{no_barrier_there, 32, 2},
     "bulk_copy_remote: there is no mbarrier at shared byte 1024 of block 1 of the cluster, or no "
     "*"},
};

static case_fault in_cluster(case_fault wrong_one) {
  wrong_one.extra.cluster = 2;
  return wrong_one;
}

TEST_LOOP(wrong_kernels, sizeof wrong / sizeof *wrong) { case_expect(in_cluster(wrong[_i])); }

static const case_fault wrong_if_late[] = {
    {{receiver_ends, 32, 2},
     "the block ends with a bulk_copy_remote to shared byte 256 in flight: nobody waits for it *|"
     "bulk_copy_remote at shared byte 1024 of block 1 of the cluster, which has ended *"},
    {{sender_ends, 32, 2},
     "the block ends with a bulk_copy_remote from shared byte 0 in flight: nothing makes it wait "
     "*"},
};

TEST_LOOP(wrong_kernels_if_late, sizeof wrong_if_late / sizeof *wrong_if_late) {
  case_expect_if_late(in_cluster(wrong_if_late[_i]));
}
