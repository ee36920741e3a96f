/* options.c - the table of options, and the command line's words sorted into files, spec words,
 * run-time arguments and variant names. */
#include "options.h"

#include "base/spelling.h"
#include "recipe/extent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AT(member)         AT_AS(member, NULL)
#define AT_AS(member, key) offsetof(cli, member), key
const cli_option cli_options[] = {
    {"help", "-h", NULL, "this text", FLAG, AT(help)},
    {"json", NULL, "FILE", "one JSON document, to stdout or FILE", TABLE, AT(json)},
    {"csv", NULL, "FILE", "comma-separated values, to stdout or FILE", TABLE, AT(csv)},
    {"quiet", "-q", NULL, "no progress", FLAG, AT(quiet)},
    {"verbose", "-v", NULL, "more of each result", FLAG, AT(verbose)},
    {"filter", NULL, "GLOB", "only variants whose name matches", TEXT, AT(filter)},
    {"plan", NULL, "GLOB", "only plans whose name matches: simt-q16-*", TEXT, AT(plan)},
    {"plans", NULL, "first|N|all", "of each spec, as its family lists them; default first", TEXT,
     AT(plans)},
    {"arch", NULL, "ARCH",
     "host or sm_80, or several: sm_80,sm_90a; default " FG_ARCH_USUAL "; see below", TEXT,
     AT(arch)},
    {"device", NULL, "DEVICE", "host or cuda:N; default FLASHGEN_DEVICE, else cuda:0", TEXT,
     AT(device)},
    {"jobs", "-j", "N", "worker processes; default one a core", COUNT, AT(jobs)},
    {"seed", NULL, "N", "of random inputs and of the host device's order", SEED, AT(seed)},
    {"output", "-o", "DIR", "write a file for each variant", TEXT, AT(directory)},
    {"output", "-o", "FILE", "where it goes; default stdout", TEXT, AT_AS(result, "result")},
    {"output", "-o", "DIR", "write all pages there, a file each", TEXT, AT_AS(directory, "pages")},
    {"output", "-o", "FILE", "where it goes; FILE.svg: as a picture; default stdout", TEXT,
     AT_AS(result, "picture")},
    {"markdown", NULL, NULL, "print Markdown", FLAG, AT(markdown)},
    {"support", NULL, NULL, "print which families compute the specs, pass by pass and arch by arch",
     FLAG, AT(support)},
    {"embed", NULL, "NAME", "write NAME.c and NAME.h too: the zoo as part of a program", TEXT,
     AT(embed)},
    {"stamp", NULL, "FILE", "touch FILE when all is made; FILE.d: what it depends on", TEXT,
     AT(stamp)},
    {"size", NULL, "MIB", "most to keep; default FLASHGEN_CACHE_SIZE", COUNT, AT(size)},
    {"without", NULL, "NAME", "launch with NULL for tensors that may be: keep, or lse,dlse", TEXT,
     AT(without)},
    {"shapes", NULL, "FILE", "the shapes, a .lua file", TEXT, AT(shapes)},
    {"wisdom", NULL, "FILE", "where measurements go; default FLASHGEN_WISDOM", TEXT, AT(wisdom)},
    {"budget", NULL, "SECONDS", "begin nothing after so long", COUNT, AT(budget)},
    {"shard", NULL, "I/N", "the Ith of N parts of the grid", TEXT, AT(shard)},
    {"all", NULL, NULL, "every line, not the fastest alone", FLAG, AT(all)},
    {"recipe", NULL, NULL, "print how to launch it, not the text", FLAG, AT(recipe)},
    {"in", NULL, "NAME=FILE", "a tensor from a .npy file", PAIR, 0, NULL},
    {"out", NULL, "NAME=FILE", "a tensor to a .npy file", PAIR, 0, NULL},
};
enum { OPTIONS = sizeof cli_options / sizeof *cli_options };
const int cli_n_options = OPTIONS;

bool cli_takes(const cli_command *command, const cli_option *o) {
  char word[32];
  snprintf(word, sizeof word, " %s ", o->key ? o->key : o->name);
  return strstr(command->options, word) != NULL;
}

/* Digits alone: strtoll would take spaces and signs too. */
static fg_status read_number(const char *name, const char *text, int64_t least, int64_t *value) {
  errno = 0;
  *value = strtoll(text, NULL, 10);
  if (errno || !*text || text[strspn(text, "0123456789")] || *value < least)
    return fg_fail(FG_EARGUMENT, "%s: \"%s\" is not an integer of at least %lld", name, text,
                   (long long)least);
  return FG_OK;
}

static fg_status add_pair(cli *c, const cli_option *o, const char *text) {
  int out = !strcmp(o->name, "out"), *n = out ? &c->n_out : &c->n_in;
  cli_pair *list = out ? c->out : c->in;
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1] || equals - text >= (int)sizeof list->name)
    return fg_fail(FG_EARGUMENT, "--%s %s: expected NAME=FILE", o->name, text);
  if (*n == (int)(sizeof c->in / sizeof *c->in))
    return fg_fail(FG_EARGUMENT, "--%s: too many files", o->name);
  cli_pair *pair = &list[*n];
  snprintf(pair->name, sizeof pair->name, "%.*s", (int)(equals - text), text);
  pair->path = equals + 1;
  for (int i = 0; i < *n; i++)
    if (!strcmp(list[i].name, pair->name))
      return fg_fail(FG_EARGUMENT, "--%s: %s is given twice", o->name, pair->name);
  ++*n;
  return FG_OK;
}

static const char *option_name(const cli_option *o) {
  static char name[16];
  snprintf(name, sizeof name, "--%s", o->name);
  return name;
}

static fg_status set_option(cli *c, const cli_option *o, const char *value) {
  char *place = (char *)c + o->place;
  switch (o->form) {
  case FLAG:
    *(int *)(void *)place = 1;
    return FG_OK;
  case TABLE:
    *(int *)(void *)place = 1;
    if (!value) return FG_OK;
    c->result = value;
    return *value ? FG_OK : fg_fail(FG_EARGUMENT, "--%s=: no file is named", o->name);
  case TEXT:
    *(const char **)(void *)place = value;
    return FG_OK;
  case COUNT:
  case SEED:
    return read_number(option_name(o), value, o->form == COUNT, (int64_t *)(void *)place);
  case PAIR:
    return add_pair(c, o, value);
  }
  return FG_OK;
}

static const cli_option *find_option(const cli_command *command, const char *text, size_t length) {
  for (int i = 0; i < OPTIONS; i++) {
    const cli_option *o = &cli_options[i];
    if (!cli_takes(command, o)) continue;
    if (o->letter && strlen(o->letter) == length && !strncmp(o->letter, text, length)) return o;
    if (length > 2 && !strncmp(text, "--", 2) && strlen(o->name) == length - 2 &&
        !strncmp(o->name, text + 2, length - 2))
      return o;
  }
  return NULL;
}

static fg_status unknown_option(const cli *c, const char *text) {
  const char *names[OPTIONS];
  int n = 0;
  for (int i = 0; i < OPTIONS; i++)
    if (cli_takes(c->command, &cli_options[i])) names[n++] = cli_options[i].name;
  const char *bare = text + strspn(text, "-"), *near = fg_nearest(bare, names, n);
  return fg_fail(FG_EARGUMENT, "%s takes no option %s%s%s%s", c->command->name, text,
                 near ? " (did you mean --" : "", near ? near : "", near ? "?)" : "");
}

/* --name value, --name=value, -n value, -n8; of a table --name or --name=value */
static fg_status read_option(int argc, char **argv, int *at, cli *c) {
  const char *text = argv[*at], *equals = strncmp(text, "--", 2) ? NULL : strchr(text, '=');
  size_t length = equals ? (size_t)(equals - text) : strlen(text);
  const cli_option *o = find_option(c->command, text, length);
  const char *value = equals ? equals + 1 : NULL;
  if (!o && text[1] != '-' && length > 2) {
    o = find_option(c->command, text, 2);
    value = text + 2;
  }
  if (!o) return unknown_option(c, text);
  if (o->form == FLAG && value) return fg_fail(FG_EARGUMENT, "--%s takes no value", o->name);
  if (o->form != FLAG && o->form != TABLE && !value) {
    if (*at + 1 >= argc) return fg_fail(FG_EARGUMENT, "--%s needs a value: %s", o->name, o->value);
    value = argv[++*at];
  }
  return set_option(c, o, value);
}

static fg_status read_real(const char *name, const char *value, double *number) {
  char *end;
  *number = strtod(value, &end);
  if (!*value || value[strspn(value, "+-.0123456789eE")] || *end)
    return fg_fail(FG_EARGUMENT, "%s: \"%s\" is not a number", name, value);
  return FG_OK;
}

static fg_status read_scale(const char *value, cli_arguments *arguments) {
  TRY(read_real("scale", value, &arguments->scale));
  arguments->has_scale = 1;
  return fg_scale_check(arguments->scale);
}

/* 64 bits, as two int32. */
static fg_status read_words(const char *name, const char *value, int64_t *words) {
  char *end;
  errno = 0;
  const uint64_t number = strtoull(value, &end, 10);
  if (!*value || value[strspn(value, "0123456789")] || *end || errno)
    return fg_fail(FG_EARGUMENT, "%s: \"%s\" is not a whole number of 64 bits", name, value);
  words[0] = (int32_t)(uint32_t)number, words[1] = (int32_t)(uint32_t)(number >> 32);
  return FG_OK;
}

static fg_status read_seed(const char *value, cli_arguments *arguments) {
  arguments->has_seed = 1;
  return read_words("seed", value, arguments->words);
}

static fg_status read_offset(const char *value, cli_arguments *arguments) {
  return read_words("offset", value, arguments->words + 2);
}

static fg_status read_sm_margin(const char *value, cli_arguments *arguments) {
  return read_number("sm_margin", value, 0, &arguments->sm_margin);
}

const cli_launch_number cli_launch_numbers[CLI_LAUNCH_NUMBERS] = {{"scale", read_scale},
                                                                  {"seed", read_seed},
                                                                  {"offset", read_offset},
                                                                  {"sm_margin", read_sm_margin}};

/* One of fg_launch_numbers. */
static fg_status read_launch_number(int i, const char *value, cli_arguments *arguments) {
  double number;
  TRY(read_real(fg_launch_numbers[i].name, value, &number));
  arguments->launch.given |= fg_launch_numbers[i].given;
  arguments->launch.value[i] = (float)number;
  return fg_launch_number_check(&fg_launch_numbers[i], number);
}

/* Is the word's name, which an extent has too, that of a field? A field of the spec has a value
 * that is no number. A plan field of former times was read beside a family: there is one in the
 * words, which name no other kind. */
static bool is_field(int argc, char **argv, const char *name, const char *value) {
  const fg_field *field = fg_field_find(name);
  bool has_family = false, has_kind = false;
  if (field && !field->plan) return value[strspn(value, "+-0123456789")] != 0;
  for (int i = 0; i < argc; i++) {
    has_family |= !strncmp(argv[i], "family=", 7);
    has_kind |= !strncmp(argv[i], "kernel=", 7);
  }
  return field && has_family && !has_kind;
}

/* A word that sets a run-time argument; *taken says whether it does. */
static fg_status read_argument(const char *word, int argc, char **argv, cli *c, int *taken) {
  const char *value = strchr(word, '=') + 1;
  size_t length = (size_t)(value - word) - 1;
  *taken = 0;
  if (!c->command->takes_arguments) return FG_OK;
  for (int i = 0; i < FG_EXTENTS; i++) {
    const fg_extent_row *extent = &fg_extents[i];
    int64_t n;
    if (strlen(extent->name) != length || strncmp(extent->name, word, length)) continue;
    if (is_field(argc, argv, extent->name, value)) return FG_OK;
    TRY(read_number(extent->name, value, 0, &n));
    fg_extent_set(extent, &c->arguments.shape, n);
    *taken = 1;
    return FG_OK;
  }
  for (int i = 0; i < CLI_LAUNCH_NUMBERS; i++) {
    const cli_launch_number *number = &cli_launch_numbers[i];
    if (strlen(number->name) != length || strncmp(number->name, word, length)) continue;
    *taken = 1;
    return number->read(value, &c->arguments);
  }
  for (int i = 0; i < FG_LAUNCH_NUMBERS; i++) {
    const char *name = fg_launch_numbers[i].name;
    if (strlen(name) != length || strncmp(name, word, length)) continue;
    *taken = 1;
    return read_launch_number(i, value, &c->arguments);
  }
  return FG_OK;
}

/* Does every spec that names no kind have the field? */
static bool is_usual(const fg_field *field) {
  return field->plan || fg_kind_has_spec_field(fg_kinds, field);
}

/* "width=128", or "inputs.width=128" where another argument has the name: whether an input has it,
 * or a kernel that field, is known when the spec is. */
static fg_status read_input_number(const char *word, cli *c, int *taken) {
  const char *value = strchr(word, '=') + 1;
  size_t n = (size_t)(value - word) - 1;
  cli_number *x = &c->number[c->n_numbers];
  char *end;
  bool infinite = !strcmp(value, "inf") || !strcmp(value, "-inf");
  if (!c->command->takes_arguments || n >= sizeof x->name || !*value ||
      (value[strspn(value, "+-.0123456789eE")] && !infinite))
    return FG_OK;
  char name[sizeof x->name];
  snprintf(name, sizeof name, "%.*s", (int)n, word);
  const char *bare = fg_input_bare(name);
  snprintf(x->name, sizeof x->name, "%s", bare);
  x->value = strtod(value, &end);
  const fg_field *field = bare == name ? fg_field_find(name) : NULL;
  if (*end || strchr(x->name, '.') || (field && is_usual(field))) return FG_OK;
  if (field && c->n_either < CLI_LIST_MAX) c->either[c->n_either++] = word;
  if (c->n_numbers == (int)(sizeof c->number / sizeof *c->number) - 1)
    return fg_fail(FG_EARGUMENT, "too many words that set numbers");
  c->n_numbers++;
  *taken = 1;
  return FG_OK;
}

/* "head_dim=", whose value a space has cut off. */
static bool is_bare_field(const char *text) {
  char name[32];
  const size_t n = strcspn(text, "=");
  if (!text[n] || text[n + 1] || n >= sizeof name) return false;
  snprintf(name, sizeof name, "%.*s", (int)n, text);
  return fg_field_find(name) != NULL;
}

/* A spec file, a word, or the name of a variant. */
static fg_status read_positional(const char *text, int argc, char **argv, cli *c) {
  size_t n = strlen(text);
  if (*text == '=' || is_bare_field(text))
    return fg_fail(FG_EARGUMENT, "\"%s\": write field=value, without spaces", text);
  if (c->command->takes_names && !strchr(text, '=')) {
    if (c->n_names == CLI_LIST_MAX)
      return fg_fail(FG_EARGUMENT, "more than %d names", CLI_LIST_MAX);
    c->names[c->n_names++] = text;
    return FG_OK;
  }
  int lua = n > 4 && !strcmp(text + n - 4, ".lua"), taken = 0;
  if (!*c->command->usage)
    return fg_fail(FG_EARGUMENT, "\"%s\": %s takes options only", text, c->command->name);
  if (c->n_files == CLI_LIST_MAX || c->n_words == CLI_LIST_MAX || c->n_names == CLI_LIST_MAX)
    return fg_fail(FG_EARGUMENT, "more than %d words or files", CLI_LIST_MAX);
  if (lua) {
    c->files[c->n_files++] = text;
  } else if (strchr(text, '=')) {
    TRY(read_argument(text, argc, argv, c, &taken));
    if (!taken) TRY(read_input_number(text, c, &taken));
    if (!taken) c->words[c->n_words++] = text;
  } else if (fg_field_find(text)) {
    return fg_fail(FG_EARGUMENT, "\"%s\" has no value: write %s=VALUE, without spaces", text, text);
  } else {
    c->names[c->n_names++] = text;
  }
  return FG_OK;
}

fg_status cli_parse(int argc, char **argv, cli *c) {
  int only_words = 0;
  c->jobs = c->seed = c->size = c->budget = -1;
  for (int i = 0; i < FG_EXTENTS; i++) fg_extent_set(&fg_extents[i], &c->arguments.shape, -1);
  for (int i = 0; i < argc; i++) {
    if (!only_words && !strcmp(argv[i], "--"))
      only_words = 1;
    else if (!only_words && argv[i][0] == '-' && argv[i][1])
      TRY(read_option(argc, argv, &i, c));
    else
      TRY(read_positional(argv[i], argc, argv, c));
  }
  if (c->json && c->csv) return fg_fail(FG_EARGUMENT, "--json and --csv: give one of them");
  if (c->result && !strcmp(c->result, "-")) c->result = NULL;
  return FG_OK;
}
