/* signal.c - what kernel code does wrong outside primitives: signals become faults with their
 * place.
 *
 * The handlers are there for one launch only, on a stack of their own, because the fault may be a
 * stack that overflowed. They act in the launching thread; signals of other threads go to whoever
 * handled them before. */
#define _GNU_SOURCE 1 /* REG_RIP */
#include "block.h"
#include "memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

int fg_host_watchdog_seconds = 10;
uint64_t fgh_progress;
static uint64_t progress_seen; /* when the watchdog was last armed */
sigjmp_buf fgh_signal_return;

static const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGVTALRM};
enum { CAUGHT = sizeof caught / sizeof *caught };

static struct sigaction old_action[CAUGHT];
static stack_t old_stack;
static struct itimerval old_timer;
static pthread_t launching;
static u8 stack[64 << 10];

/* One past the first byte of the instruction, as a return address is past its call, and the calls
 * around it. */
static const fgh_path *path_of(const ucontext_t *context) {
#if defined(__x86_64__)
  const greg_t *r = context->uc_mcontext.gregs;
  return fgh_path_of((u8 *)r[REG_RIP] + 1, (void *const *)r[REG_RBP]);
#elif defined(__aarch64__)
  const mcontext_t *r = &context->uc_mcontext;
  return fgh_path_of((u8 *)r->pc + 1, (void *const *)r->regs[29]);
#else
  (void)context;
  return NULL;
#endif
}

/* Names a tensor where it can: bare addresses vary from run to run. */
static void report_access(const void *address) {
  char place[160];
  if (fgh_stack_guards(address)) {
    fgh_report("stack overflow: a thread has %d KB for its local arrays", FGH_STACK_BYTES >> 10);
    return;
  }
  fgh_memory_place(address, place, sizeof place);
  fgh_report("access to unmapped memory: %s", place);
}

static void report(int signal, const void *address) {
  fgh_dim3 at = fgh_table.block_index;
  switch (signal) {
  case SIGVTALRM:
    fgh_report("no progress: no thread met another for %d s, one spins", fg_host_watchdog_seconds);
    break;
  case SIGFPE:
    fgh_report("integer division by zero");
    break;
  case SIGILL:
  case SIGTRAP:
    fgh_report("undefined behaviour: array index, shift or integer overflow");
    break;
  default:
    report_access(address);
  }
  fgh_report(" [block %u,%u,%u", at.x, at.y, at.z);
  if (fgh_self) fgh_report(" thread %u", fgh_self->id);
  fgh_report("]");
}

static void pass_on(int signal) {
  if (signal == SIGVTALRM) {
    pthread_kill(launching, signal);
    return;
  }
  /* the instruction runs again, and the former owner sees it */
  for (int i = 0; i < CAUGHT; i++)
    if (caught[i] == signal) sigaction(signal, &old_action[i], NULL);
}

static void on_signal(int signal, siginfo_t *info, void *context) {
  if (!pthread_equal(pthread_self(), launching)) {
    int saved = errno;
    pass_on(signal);
    errno = saved;
    return;
  }
  if (signal == SIGVTALRM && fgh_progress != progress_seen) {
    fgh_watchdog_arm();
    return;
  }
  report(signal, info->si_addr);
  fgh_found_at(path_of(context));
  siglongjmp(fgh_signal_return, 1);
}

fg_status fgh_signals_install(void) {
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  launching = pthread_self();
  sigemptyset(&action.sa_mask);
  if (sigaltstack(&alternate, &old_stack))
    return fg_fail(FG_EBUG, "no alternate signal stack: is a launch running already?");
  for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &action, &old_action[i]);
  struct itimerval off = {0};
  setitimer(ITIMER_VIRTUAL, &off, &old_timer);
  return FG_OK;
}

void fgh_signals_restore(void) {
  setitimer(ITIMER_VIRTUAL, &old_timer, NULL);
  for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &old_action[i], NULL);
  sigaltstack(&old_stack, NULL);
}

void fgh_watchdog_arm(void) {
  progress_seen = fgh_progress;
  struct itimerval limit = {.it_value = {.tv_sec = fg_host_watchdog_seconds}};
  setitimer(ITIMER_VIRTUAL, &limit, NULL);
}
