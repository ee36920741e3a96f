/* spelling.c - how far apart two words are. */
#include "spelling.h"

#include <stdbool.h>
#include <string.h>

/* Optimal string alignment: edits of one letter, and two neighbours swapped, cost 1. */
static int distance(const char *a, const char *b) {
  enum { MAX = 32 };
  int n = (int)strlen(a), m = (int)strlen(b), d[MAX + 1][MAX + 1];
  if (n > MAX || m > MAX) return n + m; /* near nothing */
  for (int i = 0; i <= n; i++) {
    for (int j = 0; j <= m; j++) {
      if (!i || !j) {
        d[i][j] = i + j;
        continue;
      }
      int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
      if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped && d[i - 2][j - 2] + 1 < best) best = d[i - 2][j - 2] + 1;
      d[i][j] = best;
    }
  }
  return d[n][m];
}

/* One slip is near in a short word, more in a long one. */
const char *fg_nearest(const char *name, const char *const *names, int n) {
  const char *best = NULL;
  int least = (int)strlen(name) / 3 + 1;
  for (int i = 0; i < n; i++) {
    int far = distance(name, names[i]);
    if (far <= least && (!best || far < least)) best = names[i], least = far;
  }
  return best;
}
