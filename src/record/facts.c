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
#include <stepwatch/record.h>
#include <stepwatch/redact.h>
#include <stepwatch/version.h>
#include <stepwatch/write.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/os.h"
#include "record/config.h"
#include "record/options.h"

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
    "MPI_LOCALRANKID",
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

static bool ends_with(const char *word, const char *end)
{
    size_t length = strlen(word);
    return length >= strlen(end) && strcmp(word + length - strlen(end), end) == 0;
}

/* Writes a command line, each argument ended by a NUL, as a JSON array of strings. */
static void write_command(sw_writer *writer, const char *arguments, size_t length,
                          bool complete)
{
    int flag = 0;
    sw_json_start(writer, false);
    sw_json_array_begin(writer);
    for (size_t i = 0; i < length;) {
        const char *argument = arguments + i;
        size_t size = strnlen(argument, length - i);
        char shown[ARGUMENT_KEPT];
        sw_redact_argument(shown, sizeof shown, argument, size, &flag);
        size_t written;
        sw_writer_text(writer, &written);
        if (written + strlen(shown) > COMMAND_KEPT) {
            complete = false;
            break;
        }
        sw_json_string(writer, shown);
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
    if (redact) {
        sw_redact_text(shown, sizeof shown, value, strlen(value));
    } else {
        sw_copy_text(shown, sizeof shown, value, strlen(value));
    }
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

static void facts_of_rank(const struct sink *sink)
{
    sw_rank rank;
    if (!sw_rank_get(&rank)) {
        return;
    }
    fact_of(sink, "rank", "%ld", rank.rank);
    if (rank.local_rank >= 0) {
        fact_of(sink, "local_rank", "%ld", rank.local_rank);
    }
    if (rank.world_size >= 0) {
        fact_of(sink, "world_size", "%ld", rank.world_size);
    }
}

static void fact_host(const struct sink *sink)
{
    char text[256];
    sw__os_host_name(text, sizeof text);
    fact(sink, "host", text, false);
}

static void facts_of_machine(const struct sink *sink)
{
    char text[256];
    fact_host(sink);
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

void sw__facts_collect(const struct sw__settings *settings, bool brief,
                       void (*put_fact)(void *arg, const char *key, const char *value),
                       void *arg)
{
    const struct sink sink = {put_fact, arg};
    char key[64];
    char value[VALUE_KEPT];
    fact(&sink, "stepwatch_version", SW_VERSION_STRING, false);
    fact_of(&sink, "format_version", "%d", SW_FORMAT_VERSION);
    if (brief) {
        fact_of(&sink, "pid", "%ld", (long)getpid());
        facts_of_rank(&sink);
        fact_host(&sink);
        return;
    }
    facts_of_process(&sink);
    facts_of_rank(&sink);
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
