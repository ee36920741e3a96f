/* ring.h - processes in a ring, one a GPU, each of which sends to the next: by NCCL, which is
 * opened by hand, or on the host device through memory that they share. */
#ifndef RING_H
#define RING_H
#define _GNU_SOURCE /* memory and barriers that processes share */

#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
  char bytes[128];
} ring_id; /* by which NCCL's ranks find each other */

static struct {
  int rank, ranks;
  void *stream; /* on which messages go */
  struct {
    pthread_barrier_t all;
    ring_id id;
  } * shared;
  char *mail; /* on the host: what each rank sends */
  size_t mail_bytes;
  void *comm;
  int (*send)(const void *, size_t, int, int, void *, void *);
  int (*receive)(void *, size_t, int, int, void *, void *);
  int (*start)(void), (*end)(void);
} ring;

static inline void ring_wait_for_all(void) { pthread_barrier_wait(&ring.shared->all); }

static inline void ring_open_nccl(void) {
  int (*new_id)(ring_id *), (*join)(void **, int, ring_id, int);
  void *library = dlopen("libnccl.so.2", RTLD_NOW);
  if (!library) device_die(dlerror());
  const struct {
    const char *name;
    void *call;
  } functions[] = {{"ncclGetUniqueId", &new_id},    {"ncclCommInitRank", &join},
                   {"ncclSend", &ring.send},        {"ncclRecv", &ring.receive},
                   {"ncclGroupStart", &ring.start}, {"ncclGroupEnd", &ring.end}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *found = dlsym(library, functions[i].name);
    if (!found) device_die(functions[i].name);
    memcpy(functions[i].call, &found, sizeof found);
  }
  if (ring.rank == 0 && new_id(&ring.shared->id)) device_die("ncclGetUniqueId");
  ring_wait_for_all();
  if (join(&ring.comm, ring.ranks, ring.shared->id, ring.rank)) device_die("ncclCommInitRank");
}

static inline void *ring_shared_memory(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) device_die("no memory");
  return p;
}

/* Returns in each rank's process, with its device open; messages have so many bytes at most. The
 * calling process waits for all and ends; when one of them fails it ends the others. */
static inline void ring_start(int ranks, int is_host, size_t most_bytes) {
  pthread_barrierattr_t attributes;
  pid_t child[64];
  if (ranks < 1 || ranks > 64) device_die("expected 1 to 64 ranks");
  ring.shared = ring_shared_memory(sizeof *ring.shared);
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&ring.shared->all, &attributes, (unsigned)ranks);
  ring.ranks = ranks, ring.mail_bytes = most_bytes;
  if (is_host) ring.mail = ring_shared_memory((size_t)ranks * most_bytes);
  for (ring.rank = 0; ring.rank < ranks; ring.rank++) {
    child[ring.rank] = fork();
    if (child[ring.rank] < 0) device_die("no process");
    if (child[ring.rank]) continue;
    char gpu[16];
    snprintf(gpu, sizeof gpu, "cuda:%d", ring.rank);
    device_open(is_host ? "host" : gpu);
    ring.stream = device_stream();
    if (!is_host) ring_open_nccl();
    return;
  }
  int failed = 0;
  for (int left = ranks, status; left > 0; left--) {
    const pid_t ended = wait(&status);
    if (status == 0 || failed) continue;
    failed = 1;
    for (int i = 0; i < ranks; i++) {
      if (child[i] == ended)
        fprintf(stderr, "rank %d failed: the others are ended\n", i);
      else
        kill(child[i], SIGKILL);
    }
  }
  exit(failed);
}

/* Sends to the next rank and receives from the one before, on ring.stream. */
static inline void ring_shift(const void *from, void *to, size_t bytes) {
  const int next = (ring.rank + 1) % ring.ranks, before = (ring.rank + ring.ranks - 1) % ring.ranks;
  if (device.driver) {
    if (ring.start() || ring.send(from, bytes, 0 /* of bytes */, next, ring.comm, ring.stream) ||
        ring.receive(to, bytes, 0, before, ring.comm, ring.stream) || ring.end())
      device_die("NCCL does not send");
    return;
  }
  memcpy(ring.mail + (size_t)ring.rank * ring.mail_bytes, from, bytes);
  ring_wait_for_all();
  memcpy(to, ring.mail + (size_t)before * ring.mail_bytes, bytes);
  ring_wait_for_all();
}

#endif
