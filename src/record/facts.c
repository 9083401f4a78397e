/* Facts about process, machine and environment that a trace carries.
 *
 * Nothing secret may get there: the environment is read by a list of harmless variables, and the
 * command line passes through a filter that rather hides too much. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/clock.h>
#include <stepwatch/version.h>
#include <stepwatch/write.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/os.h"
#include "record/config.h"
#include "record/options.h"

#define HIDDEN "***"
#define ELLIPSIS "\xE2\x80\xA6"
/* Read of a command line, kept of it, and kept of one argument. */
#define COMMAND_READ 65536
#define COMMAND_KEPT 16384
#define ARGUMENT_KEPT 4096
/* Room for any other value: a path, the longest schedule, flags of a compiler. */
#define VALUE_KEPT 8192

/* Settings that explain how fast a program runs, and where it stands among its ranks. Addresses,
 * users and whatever could hold a password stay out. */
static const char *const variables[] = {
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "OMP_SCHEDULE",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TOKENIZERS_PARALLELISM",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_TF32_OVERRIDE",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "NCCL_DEBUG",
    "NCCL_P2P_DISABLE",
    "NCCL_IB_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "ROLE_RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_NTASKS",
    "SLURM_NNODES",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS_ON_NODE",
    "PYTHONHASHSEED",
    "PYTHONOPTIMIZE",
    "PYTHONMALLOC",
    "PYTHONUNBUFFERED",
    "PYTHON_GIL",
    "PYTHON_JIT",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG",
    "XLA_FLAGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "JAX_PLATFORMS",
    "JAX_ENABLE_X64",
    "JAX_DISABLE_JIT",
    "TF_XLA_FLAGS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "TF_ENABLE_ONEDNN_OPTS",
    "KERAS_BACKEND",
};

/* Text under construction. */
struct text {
    char *out;
    size_t used;
    size_t size; /* one byte of it is for the NUL */
    bool cut;    /* something did not fit; nothing follows */
};

static void put(struct text *text, const char *bytes, size_t length)
{
    size_t room = text->size - text->used - 1;
    text->cut |= length > room;
    length = length > room ? room : length;
    memcpy(text->out + text->used, bytes, length);
    text->used += length;
    text->out[text->used] = '\0';
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z') {
        c = (char)(c - 'A' + 'a');
    }
    return c;
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) || c == '_' || c == '-' ||
           c == '.';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool among(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0) {
            return true;
        }
    }
    return false;
}
#define AMONG(word, ...)                                                                 \
    among((word), (const char *const[]){__VA_ARGS__},                                    \
          SW__COUNTOF(((const char *const[]){__VA_ARGS__})))

static bool ends_with(const char *word, const char *end)
{
    size_t length = strlen(word);
    return length >= strlen(end) && strcmp(word + length - strlen(end), end) == 0;
}

/* How secret the value behind a name may be. */
enum secrecy {
    OPEN,
    SUSPECT, /* secret if it looks random */
    SECRET
};

/* Judges one word of a name by itself and the word before it. */
static enum secrecy judge_word(const char *word, const char *before, bool last)
{
    if (ends_with(word, "password") || ends_with(word, "passwd") ||
        ends_with(word, "secret") || ends_with(word, "apikey") ||
        AMONG(word, "passphrase", "secrets", "credential", "credentials", "authorization",
              "cookie", "privatekey", "accesskey")) {
        return SECRET;
    }
    if (strcmp(word, "key") == 0 &&
        AMONG(before, "api", "access", "secret", "private", "auth", "account",
              "encryption", "signing", "service", "master", "shared", "license", "ssh")) {
        return SECRET;
    }
    if (!last) {
        return OPEN;
    }
    /* Those of a tokenizer are no secret. */
    if (ends_with(word, "token")) {
        return AMONG(before, "pad", "eos", "bos", "unk", "mask", "cls", "sep", "start",
                     "end", "stop", "special", "per", "image", "prompt", "decoder")
                   ? OPEN
                   : SECRET;
    }
    if (strcmp(word, "pwd") == 0 ||
        (strcmp(word, "pass") == 0 && AMONG(before, "", "db", "user", "admin", "root",
                                            "login", "smtp", "proxy", "ssh"))) {
        return SECRET;
    }
    return AMONG(word, "key", "auth", "sig", "signature", "session", "pat") ? SUSPECT
                                                                            : OPEN;
}

/* Judges a name by its words: "--wandb.api_key" and "apiKey" both hold "api" and "key". */
static enum secrecy judge_name(const char *name, size_t length)
{
    char words[2][64] = {"", ""};
    char *word = words[0];
    char *before = words[1];
    size_t used = 0;
    enum secrecy worst = OPEN;
    for (size_t i = 0; i <= length; i++) {
        bool gap = i == length || name[i] == '_' || name[i] == '-' || name[i] == '.';
        bool hump = !gap && i > 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
        if ((gap || hump) && used > 0) {
            word[used] = '\0';
            enum secrecy one = judge_word(word, before, i == length);
            worst = one > worst ? one : worst;
            char *swap = before;
            before = word;
            word = swap;
            used = 0;
        }
        if (!gap && used + 1 < sizeof words[0]) {
            word[used++] = lower(name[i]);
        }
    }
    return worst;
}

/* Long, and of letters and digits mixed: more likely drawn than chosen. */
static bool looks_random(const char *value, size_t length)
{
    size_t digits = 0;
    size_t letters = 0;
    for (size_t i = 0; i < length; i++) {
        if (is_digit(value[i])) {
            digits++;
        } else if (is_word(value[i])) {
            letters++;
        } else if (!strchr("+/=~", value[i])) {
            return false;
        }
    }
    return length >= 16 && digits >= 3 && letters >= 3;
}

static bool is_secret(enum secrecy secrecy, const char *value, size_t length)
{
    return length > 0 &&
           (secrecy == SECRET || (secrecy == SUSPECT && looks_random(value, length)));
}

/* Length of a key that gives itself away by its beginning, whatever it stands behind, or 0. */
static size_t known_key(const char *at, size_t left)
{
    static const struct {
        const char *prefix;
        size_t least; /* of the whole key */
    } shapes[] = {
        {"AKIA", 20},  {"ASIA", 20},        {"ghp_", 30},    {"gho_", 30}, {"ghu_", 30},
        {"ghs_", 30},  {"github_pat_", 40}, {"hf_", 20},     {"sk-", 20},  {"xoxb-", 20},
        {"xoxp-", 20}, {"glpat-", 20},      {"AIza", 35},    {"eyJ", 40},  {"npm_", 30},
        {"pypi-", 40}, {"nvapi-", 30},      {"dop_v1_", 40},
    };
    size_t length = 0;
    while (length < left && is_word(at[length])) {
        length++;
    }
    for (size_t i = 0; i < SW__COUNTOF(shapes); i++) {
        size_t prefix = strlen(shapes[i].prefix);
        if (length >= shapes[i].least && memcmp(at, shapes[i].prefix, prefix) == 0 &&
            looks_random(at, length)) {
            return length;
        }
    }
    return 0;
}

/* The user part of a URL whose "://" ends before `at`, '@' included, when it holds a password or
 * looks like a key; else 0. */
static size_t url_login(const char *at, size_t left)
{
    size_t login = 0;
    for (size_t i = 0; i < left && !is_blank(at[i]) && !strchr("/?#\"'<>", at[i]); i++) {
        login = at[i] == '@' ? i + 1 : login;
    }
    bool hidden = login > 1 && (memchr(at, ':', login) || looks_random(at, login - 1));
    return hidden ? login : 0;
}

/* Where the value behind the name at text[from..to) lies, looking past quotes, blanks and one '=' or
 * ':'. Behind a flag ("--token x") a blank is enough. False when nothing is assigned. */
static bool find_value(const char *text, size_t length, size_t from, size_t to,
                       bool whole, size_t *begin, size_t *end)
{
    size_t at = to;
    at += at < length && (text[at] == '"' || text[at] == '\'');
    while (at < length && is_blank(text[at])) {
        at++;
    }
    bool sign = at < length && (text[at] == '=' || text[at] == ':');
    if (!sign && !(text[from] == '-' && at > to && at < length && text[at] != '-')) {
        return false;
    }
    whole = whole && sign && at == to && text[at] == '=';
    at += sign;
    while (at < length && is_blank(text[at])) {
        at++;
    }
    char quote = '\0';
    if (at < length && (text[at] == '"' || text[at] == '\'')) {
        quote = text[at++];
    }
    /* "Authorization: Bearer x": the secret is the second word. */
    size_t scheme = at;
    while (scheme < length && is_word(text[scheme])) {
        scheme++;
    }
    char word[8] = "";
    for (size_t i = 0; i < scheme - at && scheme - at < sizeof word; i++) {
        word[i] = lower(text[at + i]);
    }
    if (AMONG(word, "bearer", "basic", "token") && scheme < length &&
        text[scheme] == ' ') {
        at = scheme + 1;
    }
    *begin = at;
    if (whole && !quote) {
        *end = length;
        return true;
    }
    while (at < length &&
           (quote ? text[at] != quote
                  : !is_blank(text[at]) && !strchr(",;&\"')}]", text[at]))) {
        at++;
    }
    *end = at;
    return true;
}

/* Appends `text`, with every value that looks secret hidden. */
static void put_redacted(struct text *out, const char *text, size_t length)
{
    size_t head = 0;
    while (head < length && strchr("-+~", text[head])) {
        head++;
    }
    for (size_t i = 0; i < length;) {
        if (!is_word(text[i])) {
            size_t login = length - i > 3 && memcmp(text + i, "://", 3) == 0
                               ? url_login(text + i + 3, length - i - 3)
                               : 0;
            size_t plain = login ? 3 : 1;
            put(out, text + i, plain);
            put(out, HIDDEN "@", login ? strlen(HIDDEN "@") : 0);
            i += plain + login;
            continue;
        }
        size_t key = known_key(text + i, length - i);
        if (key) {
            put(out, HIDDEN, strlen(HIDDEN));
            i += key;
            continue;
        }
        size_t to = i;
        while (to < length && is_word(text[to])) {
            to++;
        }
        size_t begin = to;
        size_t end = to;
        enum secrecy secrecy = judge_name(text + i, to - i);
        if (secrecy != OPEN && find_value(text, length, i, to, i <= head, &begin, &end) &&
            is_secret(secrecy, text + begin, end - begin)) {
            put(out, text + i, begin - i);
            put(out, HIDDEN, strlen(HIDDEN));
            i = end;
        } else {
            put(out, text + i, to - i);
            i = to;
        }
    }
}

/* Copies a value, cut to the room there is, with an ellipsis then. */
static void copy_value(char *out, size_t size, const char *value, size_t length,
                       bool redact)
{
    struct text text = {.out = out, .size = size - strlen(ELLIPSIS)};
    out[0] = '\0';
    if (redact) {
        put_redacted(&text, value, length);
    } else {
        put(&text, value, length);
    }
    if (text.cut) {
        memcpy(out + text.used, ELLIPSIS, sizeof ELLIPSIS);
    }
}

/* Writes a command line, each argument ended by a NUL, as a JSON array of strings. */
static void write_command(sw_writer *writer, const char *arguments, size_t length,
                          bool complete)
{
    enum secrecy flag = OPEN;
    sw_json_start(writer, false);
    sw_json_array_begin(writer);
    for (size_t i = 0; i < length;) {
        const char *argument = arguments + i;
        size_t size = strnlen(argument, length - i);
        char shown[ARGUMENT_KEPT];
        if (argument[0] != '-' && is_secret(flag, argument, size)) {
            memcpy(shown, HIDDEN, sizeof HIDDEN);
        } else {
            copy_value(shown, sizeof shown, argument, size, true);
        }
        size_t written;
        sw_writer_text(writer, &written);
        if (written + strlen(shown) > COMMAND_KEPT) {
            complete = false;
            break;
        }
        sw_json_string(writer, shown);
        bool is_flag = argument[0] == '-' && !memchr(argument, '=', size);
        flag = is_flag ? judge_name(argument, size) : OPEN;
        i += size + 1;
    }
    if (!complete) {
        sw_json_string(writer, ELLIPSIS);
    }
    sw_json_array_end(writer);
}

/* Where facts go. */
struct sink {
    void (*put)(void *arg, const char *key, const char *value);
    void *arg;
};

/* What is unknown is left out rather than empty. */
static void fact(const struct sink *sink, const char *key, const char *value, bool redact)
{
    char shown[VALUE_KEPT];
    copy_value(shown, sizeof shown, value, strlen(value), redact);
    if (shown[0]) {
        sink->put(sink->arg, key, shown);
    }
}

SW_PRINTF(3, 4)
static void fact_of(const struct sink *sink, const char *key, const char *format, ...)
{
    char value[256];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    fact(sink, key, value, false);
}

static void fact_command(const struct sink *sink)
{
    char *arguments = sw__alloc(COMMAND_READ);
    sw_writer *writer = sw_writer_to_memory();
    int length = -1;
    if (arguments && writer) {
        length = sw__os_read_file("/proc/self/cmdline", arguments, COMMAND_READ);
    }
    if (length > 0) {
        write_command(writer, arguments, (size_t)length, length < COMMAND_READ - 1);
        /* Half a document is none. */
        if (sw_writer_flush(writer) == SW_OK) {
            sink->put(sink->arg, "command", sw_writer_text(writer, NULL));
        }
    }
    sw_writer_close(writer, NULL);
    sw__free(arguments);
}

static void facts_of_process(const struct sink *sink)
{
    char path[PATH_MAX];
    fact_of(sink, "pid", "%ld", (long)getpid());
    fact_of(sink, "ppid", "%ld", (long)getppid());
    fact_of(sink, "uid", "%lu", (unsigned long)getuid());
    fact_command(sink);
    if (getcwd(path, sizeof path)) {
        fact(sink, "cwd", path, false);
    }
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) {
        path[length] = '\0';
        fact(sink, "executable", path, false);
    }
    struct timespec now;
    struct tm utc;
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 && gmtime_r(&now.tv_sec, &utc)) {
        fact_of(sink, "started_utc", "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ",
                utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                utc.tm_sec, now.tv_nsec / 1000000);
    }
}

static void facts_of_machine(const struct sink *sink)
{
    char text[256];
    sw__os_host_name(text, sizeof text);
    fact(sink, "host", text, false);
    sw__os_kernel(text, sizeof text);
    fact(sink, "kernel", text, false);
    sw__os_cpu_model(text, sizeof text);
    fact(sink, "cpu_model", text, false);
    fact_of(sink, "cpus_online", "%u", sw__os_cpus_online());
    unsigned percent = sw__os_cpus_usable_percent();
    /* Not %.2f: its decimal point follows the program's locale. */
    fact_of(sink, "cpus_usable", "%u.%02u", percent / 100, percent % 100);
    uint64_t memory = sw__os_memory_bytes();
    if (memory != 0) {
        fact_of(sink, "memory_bytes", "%llu", (unsigned long long)memory);
    }
    fact(sink, "clock", sw_clock_kind_name(sw_clock_get_kind()), false);
    fact(sink, "clock_why", sw_clock_why(), false);
}

void sw__facts_collect(const struct sw__settings *settings,
                       void (*put_fact)(void *arg, const char *key, const char *value),
                       void *arg)
{
    const struct sink sink = {put_fact, arg};
    char key[64];
    char value[VALUE_KEPT];
    fact(&sink, "stepwatch_version", SW_VERSION_STRING, false);
    fact_of(&sink, "format_version", "%d", SW_FORMAT_VERSION);
    facts_of_process(&sink);
    facts_of_machine(&sink);

    size_t count;
    const sw_option *options = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        snprintf(key, sizeof key, "config.%s", options[i].name);
        sw__option_show(settings, (int)i, value, sizeof value);
        fact(&sink, key, value, true);
    }
    for (size_t i = 0; i < SW__COUNTOF(variables); i++) {
        const char *setting = getenv(variables[i]);
        if (setting) {
            snprintf(key, sizeof key, "env.%s", variables[i]);
            fact(&sink, key, setting, true);
        }
    }
}

/* The last part of a path; a folder's name also where a '/' follows it. */
static size_t last_part(const char **path)
{
    size_t length = strlen(*path);
    while (length > 1 && (*path)[length - 1] == '/') {
        length--;
    }
    const char *slash = memrchr(*path, '/', length > 1 ? length - 1 : 0);
    const char *part = slash ? slash + 1 : *path;
    length -= (size_t)(part - *path);
    *path = part;
    return length;
}

/* The script or module that an interpreter's command line names, or NULL (code on the command
 * line, on standard input, or a prompt). `at` to `end` are its arguments, NUL after each. */
static const char *script_of(const char *at, const char *end)
{
    for (; at < end; at += strlen(at) + 1) {
        if (at[0] != '-') {
            return *at ? at : NULL;
        }
        if (at[1] == '\0') {
            return NULL;
        }
        if (at[1] == '-') {
            at += strcmp(at, "--check-hash-based-pycs") == 0 ? strlen(at) + 1 : 0;
            continue;
        }
        /* Flags may share a dash ("-um"); one that takes a value has it behind it or next. */
        const char *flag = at + 1 + strcspn(at + 1, "cmWX");
        const char *value = *flag && flag[1] ? flag + 1 : at + strlen(at) + 1;
        if (*flag == 'c') {
            return NULL;
        }
        if (*flag == 'm') {
            return value < end && *value ? value : NULL;
        }
        at = *flag && value < end ? value : at;
    }
    return NULL;
}

void sw__program_name(char *out, size_t size)
{
    char path[PATH_MAX];
    char arguments[4096];
    int read = sw__os_read_file("/proc/self/cmdline", arguments, sizeof arguments);
    const char *end = arguments + (read > 0 ? read : 0);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *name = path;
    if (length <= 0) {
        name = read > 0 ? arguments : "program";
    } else if (ends_with(path, " (deleted)")) {
        path[(size_t)length - strlen(" (deleted)")] = '\0';
    }
    size_t part = last_part(&name);
    if (read > 0 && (strncmp(name, "python", 6) == 0 || strncmp(name, "pypy", 4) == 0)) {
        const char *script = script_of(arguments + strlen(arguments) + 1, end);
        if (script) {
            name = script;
            part = last_part(&name);
        }
    }
    snprintf(out, size, "%.*s", (int)part, name);
}
