/* The one table of options. Help texts, checks, the environment, the configuration and the facts in
 * a trace are all made from it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/record.h>

#include "base/compiler.h"
#include "record/options.h"

/* How a value is read and shown. */
enum kind {
    KIND_BOOL,
    KIND_COUNT,
    KIND_MEGABYTES,
    KIND_HERTZ,
    KIND_NAME,
    KIND_PATH,
    KIND_SCHEDULE,
    KIND_POLICY,
    KIND_CLOCK,
    KIND_SWITCH, /* auto, on or off */
    KIND_SECONDS,
    KIND_LINES
};

/* name, type, default, kind, field of struct sw__settings, flags, help. The clock is chosen before there
 * are settings and has no field; base/clock.c reads its variable. */
#define OPTION_TABLE(X)                                                                  \
    X(enabled, "bool", "on", KIND_BOOL, enabled, 0,                                      \
      "Record at all; off in the environment wins over what the program says.")          \
    X(name, "text", "", KIND_NAME, name, 0,                                              \
      "Name of the run; empty: the name of the program.")                                \
    X(out, "text", "", KIND_PATH, out, 0,                                                \
      "Run directory; empty: a new one, <UTC time>-<name>, in runs_dir.")                \
    X(runs_dir, "text", "runs/profiling", KIND_PATH, runs_dir, 0,                        \
      "Folder in which run directories are made, where out does not name one.")          \
    X(policy, "choice", "auto", KIND_POLICY, policy, 0,                                  \
      "Which events are kept: auto (first, last and worst steps), stream (all, until "   \
      "the cap), ring (the newest) or drop (the oldest).")                               \
    X(max_mb, "number", "256", KIND_MEGABYTES, max_bytes, 0,                             \
      "Cap on the trace of one process in MiB, at least 2; none or negative: no cap.")   \
    X(events, "bool", "on", KIND_BOOL, events, 0,                                        \
      "Record single events, not only statistics and steps.")                            \
    X(schedule, "text", "always", KIND_SCHEDULE, schedule, 0,                            \
      "Steps that are recorded in detail, such as wait=1,warmup=1,active=3,every=50.")   \
    X(keep_first, "count", "50", KIND_COUNT, keep_first, 0,                              \
      "Policy auto: steps at the beginning that are kept whole.")                        \
    X(keep_last, "count", "50", KIND_COUNT, keep_last, 0,                                \
      "Policy auto: steps at the end that are kept whole.")                              \
    X(keep_worst, "count", "20", KIND_COUNT, keep_worst, 0,                              \
      "Policy auto: slowest steps that are kept whole.")                                 \
    X(step_usage, "bool", "on", KIND_BOOL, step_usage, 0,                                \
      "Read CPU time, context switches and page faults at steps.")                       \
    X(phases, "bool", "on", KIND_BOOL, phases, SW_OPTION_PYTHON,                         \
      "Find steps and their phases in torch, JAX and the frameworks, without a change "  \
      "of the program.")                                                                 \
    X(modules, "bool", "on", KIND_BOOL, modules, SW_OPTION_PYTHON,                       \
      "Time each module of a model.")                                                    \
    X(loader, "bool", "on", KIND_BOOL, loader, SW_OPTION_PYTHON,                         \
      "Look into data loaders and their workers.")                                       \
    X(brief, "bool", "on", KIND_BOOL, brief, SW_OPTION_PYTHON,                           \
      "Watch most steps of a training in brief where steps are short, so that "          \
      "watching costs less.")                                                            \
    X(operators, "bool", "off", KIND_BOOL, operators, SW_OPTION_PYTHON,                  \
      "Record torch operators by torch.profiler in the steps of the schedule.")          \
    X(functions, "bool", "off", KIND_BOOL, functions, SW_OPTION_PYTHON | SW_OPTION_RUN,  \
      "Profile every Python function of the program.")                                   \
    X(lines, "list", "", KIND_LINES, lines, SW_OPTION_PYTHON | SW_OPTION_RUN,            \
      "Functions whose lines are timed, each MODULE:FUNCTION, separated by commas.")     \
    X(memory, "bool", "off", KIND_BOOL, memory, SW_OPTION_PYTHON,                        \
      "Count every allocation, by section, and sample where they come from.")            \
    X(memory_sample_kb, "count", "512", KIND_COUNT, memory_sample_kb, SW_OPTION_PYTHON,  \
      "With memory: a stack is taken about every so many KiB that are allocated; 0: "    \
      "none, counters only.")                                                            \
    X(memory_native, "bool", "off", KIND_BOOL, memory_native, SW_OPTION_PYTHON,          \
      "With memory: name the native function that allocated, below the Python stack.")   \
    X(sampler_hz, "number", "0", KIND_HERTZ, sampler_hz, SW_OPTION_PYTHON,               \
      "Looks at the stacks of Python threads, 0 to 1000 times a second; 0: none. 100 "   \
      "under stepwatch run.")                                                            \
    X(monitor_interval_s, "number", "0", KIND_SECONDS, monitor_interval_s, 0,            \
      "Seconds between looks at CPU, memory, disks and network, 0.01 to 3600; 0: none. " \
      "1 under stepwatch run.")                                                          \
    X(monitor_pss_s, "number", "0", KIND_SECONDS, monitor_pss_s, 0,                      \
      "Seconds between looks of the monitor at the proportional share of memory (PSS), " \
      "which is dear in large processes; 0: none.")                                      \
    X(gpu, "choice", "auto", KIND_SWITCH, gpu, 0,                                        \
      "The monitor watches NVIDIA GPUs: on, off or auto (once the program has loaded "   \
      "the CUDA driver).")                                                               \
    X(nvml, "text", "", KIND_PATH, nvml, 0,                                              \
      "Library to ask about GPUs; empty: the driver's own, libnvidia-ml.so.1.")          \
    X(io, "bool", "off", KIND_BOOL, io, 0,                                               \
      "Watch calls on files and sockets: bytes, calls and time by path and section.")    \
    X(progress, "choice", "auto", KIND_SWITCH, progress, SW_OPTION_RUN,                  \
      "A line on stderr with steps and speed while the program runs: on, off or auto "   \
      "(on a terminal).")                                                                \
    X(report, "bool", "on", KIND_BOOL, report, SW_OPTION_RUN,                            \
      "Report at the end; off leaves the native files only.")                            \
    X(history, "bool", "on", KIND_BOOL, history, SW_OPTION_RUN,                          \
      "Add the run to history.db beside its directory; not where report is off.")        \
    X(hot_dir, "text", "", KIND_PATH, hot_dir, 0,                                        \
      "Folder for the file that is written while recording; empty: /dev/shm, else the "  \
      "best there is.")                                                                  \
    X(clock, "choice", "auto", KIND_CLOCK, name, SW_OPTION_ENVIRONMENT,                  \
      "Clock of the records: auto, tsc or monotonic; from the environment only.")        \
    X(quiet, "bool", "off", KIND_BOOL, quiet, 0, "Do not say on stderr what was lost.")

static const sw_option options[] = {
#define OPTION_PUBLIC(name, type, text, kind, field, flags, help)                        \
    {#name, type, text, help, flags},
    OPTION_TABLE(OPTION_PUBLIC)
#undef OPTION_PUBLIC
};
_Static_assert(SW__COUNTOF(options) <= SW__OPTIONS_MOST,
               "lists of options are too short");

static const struct place {
    enum kind kind;
    size_t offset; /* in struct sw__settings */
    size_t size;   /* of the field */
} places[] = {
#define OPTION_PLACE(name, type, text, kind, field, flags, help)                         \
    {kind, offsetof(struct sw__settings, field),                                         \
     sizeof(((struct sw__settings *)0)->field)},
    OPTION_TABLE(OPTION_PLACE)
#undef OPTION_PLACE
};

static const char *const policies[] = {
    [SW_POLICY_AUTO] = "auto",
    [SW_POLICY_STREAM] = "stream",
    [SW_POLICY_RING] = "ring",
    [SW_POLICY_DROP] = "drop",
};
static const char *const clocks[] = {"auto", "tsc", "monotonic"};
static const char *const switches[] = {"auto", "on", "off"};

/* More steps than this cannot be kept whole within any sensible cap. */
#define COUNT_MOST 1000000u
/* 2^40 MiB; keeps the cap in bytes well within 64 bits. */
#define MEGABYTES_MOST 1099511627776.0

/* The letters of ASCII only: tolower and strcasecmp follow the program's locale, and in a Turkish
 * one "NAME_FIRST" and "name_first" differ. */
static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        c = (char)(c - 'A' + 'a');
    }
    return c;
}

static bool same_word(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

const sw_option *sw_options(size_t *count)
{
    if (count) {
        *count = SW__COUNTOF(options);
    }
    return options;
}

int sw__option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < SW__COUNTOF(options); i++) {
        if (strlen(options[i].name) == length &&
            memcmp(options[i].name, name, length) == 0) {
            return (int)i;
        }
    }
    return -1;
}

void sw__option_variable(const char *name, char *out, size_t size)
{
    snprintf(out, size, "STEPWATCH_%s", name);
    for (char *at = out; *at; at++) {
        if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
}

/* Fails with the value, cut where it is long, and what was expected instead. */
static int refuse(sw_error_info *info, const char *name, const char *value,
                  const char *expected)
{
    return sw_error_set(info, SW_EINVAL, "%s is \"%.60s\" but should be %s", name, value,
                        expected);
}

static int read_bool(const char *value, bool *out)
{
    static const char *const words[] = {"0",  "1",   "false", "true",
                                        "no", "yes", "off",   "on"};
    for (size_t i = 0; i < SW__COUNTOF(words); i++) {
        if (same_word(value, words[i])) {
            *out = i % 2 != 0;
            return SW_OK;
        }
    }
    return SW_EINVAL;
}

static int read_count(const char *value, unsigned *out)
{
    unsigned number = 0;
    for (const char *at = value; *at; at++) {
        if (*at < '0' || *at > '9') {
            return SW_EINVAL;
        }
        number = number * 10 + (unsigned)(*at - '0');
        if (number > COUNT_MOST) {
            return SW_EINVAL;
        }
    }
    *out = number;
    return *value ? SW_OK : SW_EINVAL;
}

/* A plain decimal number. Not strtod: that follows the program's locale, where the point may be
 * a comma, and reads "nan" and "0x10" too. */
static int read_decimal(const char *value, double *out)
{
    const char *at = value + (*value == '-' || *value == '+');
    double number = 0;
    double scale = 1;
    bool digits = false;
    bool point = false;
    for (; *at; at++) {
        if (*at == '.' && !point) {
            point = true;
        } else if (*at >= '0' && *at <= '9') {
            digits = true;
            scale *= point ? 10 : 1;
            number = number * 10 + (*at - '0');
        } else {
            return SW_EINVAL;
        }
    }
    /* Beyond 300 digits both are infinite and say nothing. */
    if (!digits || at - value > 300) {
        return SW_EINVAL;
    }
    *out = *value == '-' ? -(number / scale) : number / scale;
    return SW_OK;
}

int sw__option_hertz(double hertz, double *out, sw_error_info *info)
{
    if (!(hertz <= SW__HERTZ_MOST)) {
        return sw_error_set(info, SW_EINVAL, "sampler_hz should be from 0 to %d",
                            SW__HERTZ_MOST);
    }
    *out = hertz > 0 ? hertz : 0;
    return SW_OK;
}

int sw__option_seconds(const char *name, double seconds, double *out, sw_error_info *info)
{
    if (seconds > 0 && !(seconds >= SW__SECONDS_LEAST && seconds <= SW__SECONDS_MOST)) {
        return sw_error_set(info, SW_EINVAL,
                            "%s should be 0, or from 0.01 to 3600 seconds", name);
    }
    if (seconds != seconds) {
        return sw_error_set(info, SW_EINVAL, "%s is not a number", name);
    }
    *out = seconds > 0 ? seconds : 0;
    return SW_OK;
}

static int read_hertz(const char *value, double *out)
{
    double hertz;
    if (read_decimal(value, &hertz) != SW_OK || hertz < 0) {
        return SW_EINVAL;
    }
    return sw__option_hertz(hertz, out, NULL);
}

int sw__option_megabytes(double megabytes, uint64_t *bytes, sw_error_info *info)
{
    if (megabytes < 0) {
        *bytes = 0;
        return SW_OK;
    }
    if (!(megabytes >= SW__MAX_MB_LEAST && megabytes <= MEGABYTES_MOST)) {
        return sw_error_set(info, SW_EINVAL,
                            "max_mb should be at least %d MiB, or negative for no cap",
                            SW__MAX_MB_LEAST);
    }
    *bytes = (uint64_t)(megabytes * 1048576.0);
    return SW_OK;
}

static int read_megabytes(const char *value, uint64_t *bytes)
{
    double megabytes = -1;
    if (!same_word(value, "none") && read_decimal(value, &megabytes) != SW_OK) {
        return SW_EINVAL;
    }
    return sw__option_megabytes(megabytes, bytes, NULL);
}

/* MODULE:FUNCTION,MODULE:FUNCTION. */
static bool are_lines(const char *value)
{
    for (const char *at = value; *at;) {
        size_t length = strcspn(at, ",");
        size_t module = strcspn(at, ":");
        if (module == 0 || module + 1 >= length ||
            memchr(at + module + 1, ':', length - module - 1) ||
            strcspn(at, " \t\r\n") < length || (at[length] && !at[length + 1])) {
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

/* The number of `value` among words, or -1. */
static int choice_of(const char *value, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, words[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool fits_folder(char c, bool first)
{
    bool letter = (lower(c) >= 'a' && lower(c) <= 'z') || (unsigned char)c >= 0x80;
    return letter || (c >= '0' && c <= '9') || strchr(first ? "_+=,@" : "_+=,@.-", c);
}

/* Copies a name that is fit to be part of a folder's: what a shell or a path takes for something
 * else becomes '_', and so does a beginning that would hide it or make it look like an option. */
static void copy_name(char *out, size_t size, const char *value)
{
    size_t length = 0;
    for (; value[length] && length + 1 < size; length++) {
        out[length] = '_';
        if (fits_folder(value[length], length == 0)) {
            out[length] = value[length];
        }
    }
    /* A character of several bytes is not cut in the middle. */
    while (length > 0 && ((unsigned char)value[length] & 0xC0) == 0x80) {
        length--;
    }
    out[length] = '\0';
}

int sw__option_apply(struct sw__settings *out, int index, const char *value,
                     sw_error_info *info)
{
    const struct place *place = &places[index];
    const char *name = options[index].name;
    void *field = (char *)out + place->offset;
    int choice;
    bool truth;
    double number;
    sw_schedule schedule;
    sw_error_info why;
    switch (place->kind) {
    case KIND_BOOL:
        return read_bool(value, field) == SW_OK
                   ? SW_OK
                   : refuse(info, name, value, "1/0, true/false, yes/no or on/off");
    case KIND_COUNT:
        return read_count(value, field) == SW_OK
                   ? SW_OK
                   : refuse(info, name, value, "a whole number from 0 to 1000000");
    case KIND_MEGABYTES:
        return read_megabytes(value, field) == SW_OK
                   ? SW_OK
                   : refuse(info, name, value,
                            "a number of MiB, at least 2, or none for no cap");
    case KIND_HERTZ:
        return read_hertz(value, field) == SW_OK
                   ? SW_OK
                   : refuse(info, name, value, "a number from 0 to 1000");
    case KIND_NAME:
        copy_name(field, place->size, value);
        return SW_OK;
    case KIND_PATH:
        /* A path that is cut would lead elsewhere. */
        if (strlen(value) >= place->size) {
            return sw_error_set(info, SW_EINVAL, "%s is longer than %zu bytes", name,
                                place->size - 1);
        }
        memcpy(field, value, strlen(value) + 1);
        return SW_OK;
    case KIND_SCHEDULE:
        if (sw_schedule_parse(&schedule, value, &why) != SW_OK) {
            return sw_error_set(info, SW_EINVAL, "%s: %s", name, why.message);
        }
        memcpy(field, &schedule, sizeof schedule);
        return SW_OK;
    case KIND_POLICY:
        choice = choice_of(value, policies, SW__COUNTOF(policies));
        if (choice < 0) {
            return refuse(info, name, value, "auto, stream, ring or drop");
        }
        out->policy = (enum sw_policy)choice;
        return SW_OK;
    case KIND_CLOCK:
        return choice_of(value, clocks, SW__COUNTOF(clocks)) >= 0
                   ? SW_OK
                   : refuse(info, name, value, "auto, tsc or monotonic");
    case KIND_SWITCH:
        choice = choice_of(value, switches, SW__COUNTOF(switches));
        /* The truths of files: TOML and YAML make them of on and off. */
        if (choice < 0 && read_bool(value, &truth) == SW_OK) {
            choice = truth ? 1 : 2;
        }
        if (choice < 0) {
            return refuse(info, name, value, "auto, on or off");
        }
        *(unsigned *)field = (unsigned)choice;
        return SW_OK;
    case KIND_SECONDS:
        return read_decimal(value, &number) == SW_OK && number >= 0 &&
                       sw__option_seconds(name, number, field, NULL) == SW_OK
                   ? SW_OK
                   : refuse(info, name, value, "0, or from 0.01 to 3600 seconds");
    case KIND_LINES:
        if (strlen(value) >= place->size) {
            return sw_error_set(info, SW_EINVAL, "%s names too many functions", name);
        }
        if (!are_lines(value)) {
            return refuse(info, name, value, "MODULE:FUNCTION, separated by commas");
        }
        memcpy(field, value, strlen(value) + 1);
        return SW_OK;
    }
    return SW_EINVAL;
}

/* A number of millionths. By hand, for the decimal point of printf follows the program's locale. */
static size_t show_decimal(unsigned long long whole, unsigned long long millionths,
                           char *out, size_t size)
{
    char text[32];
    whole += millionths / 1000000;
    snprintf(text, sizeof text, "%06llu", millionths % 1000000);
    for (size_t end = 6; end > 0 && text[end - 1] == '0'; end--) {
        text[end - 1] = '\0';
    }
    return (size_t)snprintf(out, size, "%llu%s%s", whole, *text ? "." : "", text);
}

static size_t show_megabytes(uint64_t bytes, char *out, size_t size)
{
    if (bytes == 0) {
        return (size_t)snprintf(out, size, "none");
    }
    return show_decimal(bytes >> 20, ((bytes & 0xFFFFF) * 1000000 + 524288) >> 20, out,
                        size);
}

size_t sw__option_show(const struct sw__settings *settings, int index, char *out,
                       size_t size)
{
    const struct place *place = &places[index];
    const void *field = (const char *)settings + place->offset;
    const char *wish;
    switch (place->kind) {
    case KIND_BOOL:
        return (size_t)snprintf(out, size, "%s", *(const bool *)field ? "on" : "off");
    case KIND_COUNT:
        return (size_t)snprintf(out, size, "%u", *(const unsigned *)field);
    case KIND_MEGABYTES:
        return show_megabytes(settings->max_bytes, out, size);
    case KIND_HERTZ:
        return show_decimal(
            0, (unsigned long long)(*(const double *)field * 1000000 + 0.5), out, size);
    case KIND_NAME:
    case KIND_PATH:
    case KIND_LINES:
        return (size_t)snprintf(out, size, "%s", (const char *)field);
    case KIND_SWITCH:
        return (size_t)snprintf(out, size, "%s", switches[*(const unsigned *)field]);
    case KIND_SECONDS:
        return show_decimal(
            0, (unsigned long long)(*(const double *)field * 1000000 + 0.5), out, size);
    case KIND_SCHEDULE:
        return sw_schedule_format(&settings->schedule, out, size);
    case KIND_POLICY:
        return (size_t)snprintf(out, size, "%s", policies[settings->policy]);
    case KIND_CLOCK:
        wish = getenv("STEPWATCH_CLOCK");
        wish = wish && choice_of(wish, clocks, SW__COUNTOF(clocks)) >= 0 ? wish : "auto";
        return (size_t)snprintf(out, size, "%s", wish);
    }
    return 0;
}

#define NAME_MOST 48

/* Edits that make one name the other: letters put in, left out, changed, or swapped with their
 * neighbour. Case does not count, nor whether words are joined by '-' or '_'. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NAME_MOST + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            bool same = a[i - 1] == b[j - 1];
            size_t best = above[j - 1] + !same;
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                size_t swapped = rows[(i - 2) % 3][j - 2] + 1;
                best = swapped < best ? swapped : best;
            }
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

/* Whether one name is the beginning of the other: then it is what is meant, however much is missing. */
static bool begins(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t shorter = a_length < b_length ? a_length : b_length;
    return shorter >= 3 && memcmp(a, b, shorter) == 0;
}

const char *sw_option_nearest(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > NAME_MOST) {
        return NULL;
    }
    char plain[NAME_MOST];
    for (size_t i = 0; i < length; i++) {
        plain[i] = lower(name[i]);
        if (name[i] == '-') {
            plain[i] = '_';
        }
    }
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < SW__COUNTOF(options); i++) {
        size_t known = strlen(options[i].name);
        size_t edits = distance(plain, length, options[i].name, known);
        if (edits > 2 && begins(plain, length, options[i].name, known)) {
            edits = 2;
        }
        if (edits < least) {
            least = edits;
            nearest = options[i].name;
        }
    }
    return nearest;
}

int sw_option_check(const char *name, const char *value, sw_error_info *info)
{
    int index = name ? sw__option_find(name, strlen(name)) : -1;
    if (index < 0) {
        const char *nearest = sw_option_nearest(name);
        return sw_error_set(info, SW_ENOTFOUND, "there is no option \"%.60s\"%s%s%s",
                            name ? name : "", nearest ? "; did you mean " : "",
                            nearest ? nearest : "", nearest ? "?" : "");
    }
    struct sw__settings scratch;
    return sw__option_apply(&scratch, index, value ? value : "", info);
}
