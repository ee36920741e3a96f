/* spelling.h - "did you mean": the known word that an unknown one may have been meant to be. */
#ifndef FG_SPELLING_H
#define FG_SPELLING_H

/* The name of the list that is nearest to `name` in spelling, NULL when none is near. */
const char *fg_nearest(const char *name, const char *const *names, int n);

#endif
