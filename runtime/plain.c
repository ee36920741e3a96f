/* plain.c - the locale in which numbers have a point. */
#define _GNU_SOURCE /* newlocale */
#include "plain.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* 0, which changes nothing, where memory ran out */

static void make(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

locale_t fg_plain_begin(void) {
  pthread_once(&once, make);
  return uselocale(plain);
}

void fg_plain_end(locale_t own) { uselocale(own); }
