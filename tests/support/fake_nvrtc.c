/* fake_nvrtc.c - an NVRTC of whatever version, which compiles nothing: the options that it was
 * given are its log.
 *
 * FAKE_NVRTC_VERSION=12.4 is what it says it is; FAKE_NVRTC_RESULT=7 is what a compile comes to;
 * its error's text is "result 7". FAKE_NVRTC_SILENT=1: the log has no error when figures are asked
 * for, as 13.0's when ptxas fails; 2: it never has one. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int nvrtcVersion(int *major, int *minor);
int nvrtcCreateProgram(void **program, const char *text, const char *name, int n,
                       const char *const *headers, const char *const *names);
int nvrtcCompileProgram(void *program, int n, const char *const *options);
int nvrtcDestroyProgram(void **program);
int nvrtcGetProgramLogSize(void *program, size_t *size);
int nvrtcGetProgramLog(void *program, char *log);
int nvrtcGetCUBINSize(void *program, size_t *size);
int nvrtcGetCUBIN(void *program, char *cubin);
int nvrtcGetNumSupportedArchs(int *n);
int nvrtcGetSupportedArchs(int *archs);
const char *nvrtcGetErrorString(int result);

static char said[1024];

int nvrtcVersion(int *major, int *minor) {
  const char *version = getenv("FAKE_NVRTC_VERSION");
  return sscanf(version ? version : "13.0", "%d.%d", major, minor) != 2;
}

int nvrtcCompileProgram(void *program, int n, const char *const *options) {
  const char *result = getenv("FAKE_NVRTC_RESULT"), *silent = getenv("FAKE_NVRTC_SILENT");
  size_t size = 0;
  bool figures = false;
  for (int i = 0; i < n; i++) {
    size += (size_t)snprintf(said + size, sizeof said - size, "%s ", options[i]);
    figures = figures || !strcmp(options[i], "-Xptxas=-v");
  }
  bool error = !silent || (!figures && !strcmp(silent, "1"));
  snprintf(said + size, sizeof said - size, error ? "\nan error" : "\nfigures");
  return result ? atoi(result) : 6;
}

int nvrtcGetProgramLogSize(void *program, size_t *size) {
  *size = sizeof said;
  return 0;
}

int nvrtcGetProgramLog(void *program, char *log) {
  memcpy(log, said, sizeof said);
  return 0;
}

int nvrtcGetNumSupportedArchs(int *n) {
  *n = 1;
  return 0;
}

int nvrtcGetSupportedArchs(int *archs) {
  *archs = 90;
  return 0;
}

const char *nvrtcGetErrorString(int result) {
  static char text[32];
  snprintf(text, sizeof text, "result %d", result);
  return text;
}

#define ANSWER(name, parameters)                                                                   \
  int name parameters { return 0; }
ANSWER(nvrtcCreateProgram, (void **program, const char *text, const char *name, int n,
                            const char *const *headers, const char *const *names))
ANSWER(nvrtcDestroyProgram, (void **program))
ANSWER(nvrtcGetCUBINSize, (void *program, size_t *size))
ANSWER(nvrtcGetCUBIN, (void *program, char *cubin))
