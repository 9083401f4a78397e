/* What a watched call on a file costs: the same call through a pointer that was taken before, and as the program makes it, while calls
 * are watched.
 *
 *     io OUT ROUNDS
 */
#include "bench.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stepwatch/stepwatch.h>

static int file, sink;
static FILE *stream;
static char path[4096];
static char buffer[4096];

static ssize_t (*raw_pread)(int, void *, size_t, off_t);
static ssize_t (*raw_write)(int, const void *, size_t);
static int (*raw_open)(const char *, int, ...);
static int (*raw_close)(int);
static size_t (*raw_fread)(void *, size_t, size_t, FILE *);

BENCH_LOOP void read_raw(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!raw_pread(file, buffer, 16, 0);
    }
}

BENCH_LOOP void read_watched(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!pread(file, buffer, 16, 0);
    }
}

BENCH_LOOP void write_raw(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!raw_write(sink, buffer, 16);
    }
}

BENCH_LOOP void write_watched(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!write(sink, buffer, 16);
    }
}

BENCH_LOOP void open_raw(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        raw_close(raw_open(path, O_RDONLY));
    }
}

BENCH_LOOP void open_watched(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        close(open(path, O_RDONLY));
    }
}

BENCH_LOOP void stream_raw(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!raw_fread(buffer, 1, 8, stream);
    }
    rewind(stream);
}

BENCH_LOOP void stream_watched(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)!fread(buffer, 1, 8, stream);
    }
    rewind(stream);
}

static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        bench_fail("a function of the C library is missing");
    }
    return found;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: io OUT ROUNDS\n");
        return 2;
    }
    *(void **)&raw_pread = function("pread");
    *(void **)&raw_write = function("write");
    *(void **)&raw_open = function("open");
    *(void **)&raw_close = function("close");
    *(void **)&raw_fread = function("fread");
    snprintf(path, sizeof path, "%s.bin", argv[1]);
    FILE *made = fopen(path, "wb");
    for (size_t i = 0; made && i < 4096; i++) {
        (void)!fwrite(buffer, 1, sizeof buffer, made);
    }
    if (!made || fclose(made) != 0) {
        bench_fail("the file cannot be written");
    }
    file = open(path, O_RDONLY);
    sink = open("/dev/null", O_WRONLY);
    stream = fopen(path, "rb");
    if (file < 0 || sink < 0 || !stream) {
        bench_fail("the files cannot be opened");
    }
    bench_pin(0);
    const char *const set[] = {"io=on", NULL};
    const sw_config config = {
        .name = "io", .out = argv[1], .enabled = SW_ON, .quiet = SW_ON, .set = set};
    bench_record(&config);
    sw_section *section = sw_section_get("load");
    sw_begin(section);
    static const struct bench_case cases[] = {
        {"read_raw", read_raw, 2000, 1},
        {"read_watched", read_watched, 2000, 1},
        {"write_raw", write_raw, 2000, 1},
        {"write_watched", write_watched, 2000, 1},
        {"open_raw", open_raw, 500, 1},
        {"open_watched", open_watched, 500, 1},
        {"stream_raw", stream_raw, 20000, 1},
        {"stream_watched", stream_watched, 20000, 1},
    };
    printf("{");
    bench_run(cases, BENCH_COUNT(cases), (unsigned)bench_number(argv[2]));
    printf("}\n");
    sw_end(section);
    sw_shutdown();
    remove(path);
    return 0;
}
