/* work_watch.h - counts what calls of the library do, whatever the time that they take.
 *
 * The linker puts the functions of work_watch.c in front of the counted ones (tests/CMakeLists.txt
 * names both), for calls from one file to another. */
#ifndef FG_TESTS_WORK_WATCH_H
#define FG_TESTS_WORK_WATCH_H

typedef enum work_kind {
  WORK_NAMES,       /* of specs and plans, made */
  WORK_LINES,       /* of wisdom, read */
  WORK_COMPARED,    /* strings */
  WORK_FORMULAS,    /* expressions of a spec, read */
  WORK_PRINTED,     /* recipes */
  WORK_PARSED,      /* the same */
  WORK_TEMPLATES,   /* files, read */
  WORK_ALLOCATIONS, /* but for Lua's */
  WORK_KINDS
} work_kind;
extern const char *const work_names[WORK_KINDS];

/* Starts counting at 0; stops and gives what was counted since. */
void work_start(void);
void work_stop(long work[WORK_KINDS]);

#endif
