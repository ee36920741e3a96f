/* fiber.c - context switches by hand on x86-64 and aarch64, by ucontext elsewhere.
 *
 * A context is the saved stack pointer, with the registers on the stack above it (or the address
 * of a ucontext_t that lies on the stack). */
#include "fiber.h"

#include "clock.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static u8 *stacks[FGH_MAX_SEATS]; /* FGH_MAX_THREADS times: a guard page, then the stack */
static size_t page;               /* bytes */

u64 fgh_random_state = 1;

void fgh_random_seed(u64 seed) {
  /* splitmix64, so that neighbouring seeds share nothing; xorshift must not start at zero */
  u64 x = seed + 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  fgh_random_state = (x ^ x >> 31) | 1;
}

static fg_status map(u8 **of_seat) {
  size_t each = FGH_STACK_BYTES + page;
  void *all = mmap(NULL, FGH_MAX_THREADS * each, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return fg_fail(FG_EMEMORY, "no memory for the host device's stacks");
  for (size_t i = 0; i < FGH_MAX_THREADS; i++)
    if (mprotect((u8 *)all + i * each, page, PROT_NONE)) {
      munmap(all, FGH_MAX_THREADS * each);
      return fg_fail(FG_EMEMORY, "no guard pages for the host device's stacks");
    }
  *of_seat = all;
  return FG_OK;
}

fg_status fgh_stacks_map(u32 seats) {
  page = (size_t)sysconf(_SC_PAGESIZE);
  for (u32 i = 0; i < seats; i++)
    if (!stacks[i]) TRY(map(&stacks[i]));
  return FG_OK;
}

int fgh_stack_guards(const void *address) {
  size_t each = FGH_STACK_BYTES + page;
  for (u32 i = 0; i < FGH_MAX_SEATS; i++) {
    size_t at = (size_t)((const u8 *)address - stacks[i]);
    if (stacks[i] && at < FGH_MAX_THREADS * each) return at % each < page;
  }
  return 0;
}

/* Where a stack begins, downwards. Staggered by a few cache lines from one thread to the next (at
 * most 4 KB are lost): tops at equal page offsets would compete for the same sets of the cache. */
static u8 *stack_top(u32 seat, u32 index) {
  return stacks[seat] + (size_t)(index + 1) * (FGH_STACK_BYTES + page) - (size_t)(index % 16) * 256;
}

#if defined(__x86_64__) && !defined(FGH_PORTABLE_FIBERS)

/* It ends in ret, not in a jump: the fibers' calls and returns then match the processor's return
 * predictions (measured on a Xeon: 18 against 38 ns a warp_sync and lane). */
__asm__(".pushsection .text\n"
        ".globl fgh_context_switch\n"
        ".hidden fgh_context_switch\n"
        ".type fgh_context_switch, @function\n"
        "fgh_context_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size fgh_context_switch, . - fgh_context_switch\n"
        ".popsection\n");

/* The frame that the switch pops: six registers, then the address it returns to. The return leaves
 * the stack pointer at 8 modulo 16, as a call would. */
fgh_context fgh_context_new(u32 seat, u32 index, void (*run)(void)) {
  void **frame = (void **)(void *)stack_top(seat, index) - 8;
  memset(frame, 0, 8 * sizeof *frame);
  memcpy(&frame[6], &run, sizeof run);
  return frame;
}

#elif defined(__aarch64__) && !defined(FGH_PORTABLE_FIBERS)

__asm__(".pushsection .text\n"
        ".globl fgh_context_switch\n"
        ".hidden fgh_context_switch\n"
        ".type fgh_context_switch, %function\n"
        "fgh_context_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size fgh_context_switch, . - fgh_context_switch\n"
        ".popsection\n");

/* The frame that the switch pops, twenty registers: it returns through x30, the twelfth. */
fgh_context fgh_context_new(u32 seat, u32 index, void (*run)(void)) {
  void **frame = (void **)(void *)stack_top(seat, index) - 20;
  memset(frame, 0, 20 * sizeof *frame);
  memcpy(&frame[11], &run, sizeof run);
  return frame;
}

#else

#include <ucontext.h>

void fgh_context_switch(fgh_context *from, fgh_context to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, to);
}

/* The ucontext_t lies at the top, and the stack ends below it. */
fgh_context fgh_context_new(u32 seat, u32 index, void (*run)(void)) {
  size_t room = (sizeof(ucontext_t) + 63) / 64 * 64;
  u8 *base = stacks[seat] + (size_t)index * (FGH_STACK_BYTES + page) + page;
  ucontext_t *context = (ucontext_t *)(void *)(stack_top(seat, index) - room);
  getcontext(context);
  context->uc_stack.ss_sp = base;
  context->uc_stack.ss_size = (size_t)((u8 *)context - base);
  context->uc_link = NULL;
  makecontext(context, run, 0);
  return context;
}

#endif
