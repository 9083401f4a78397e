/* No room: memory file systems, disks and limits on file sizes that are or become full. */
#include "crash.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const policies[] = {"stream", "ring", "auto", "drop"};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))

/* All that a recording without enough room may do: the program does not notice, every record is accounted
 * for, and a line says so if some are missing. */
static void check_bounded(const struct run *run, const struct run *plain,
                          const struct tally *tally)
{
    check_same(run, plain);
    CHECK_EQ(tally->result, 0);
    CHECK_EQ(tally->files, 1);
    CHECK_EQ(tally->unreadable, 0);
    CHECK_EQ(tally->damaged, 0);
    CHECK_EQ(tally->counted, tally->present);
    CHECK_EQ(tally->nameless, 0);
    CHECK_EQ(ATTEMPTED(tally), run_done(run));
    CHECK_EQ(tally->steps + tally->steps_dropped, run_steps(run));
    check_said(run, tally->dropped || tally->steps_dropped);
}

/* The memory file system is small from the start. */
static void small_memory(void)
{
    need_mounts();
    for (unsigned kib = 1024; kib <= 2048; kib *= 2) {
        char hot[300], hot_text[400], name[32];
        snprintf(name, sizeof(name), "hot-%u", kib);
        mount_tmpfs(name, kib, hot, sizeof(hot));
        snprintf(hot_text, sizeof(hot_text), "STEPWATCH_HOT_DIR=%s", hot);
        for (unsigned i = 0; i < POLICIES; i++) {
            char policy[64], out[300];
            snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
            snprintf(out, sizeof(out), "%s/run-%u-%u", crash_dir, kib, i);
            const char *const env[] = {policy, hot_text, NULL};
            struct run plain = {0}, run = {.env = env, .out = out};
            struct tally tally;
            run_plain(&plain, "count", "60000", NULL);
            run_whole(&run, "count", "60000", NULL);
            tally_read(&tally, out);
            check_bounded(&run, &plain, &tally);
            CHECK_EQ(tally.closed, 1);
            run_free(&plain);
            run_free(&run);
        }
    }
}

/* Somebody else takes the rest of it in the middle. */
static void memory_fills_up(void)
{
    need_mounts();
    for (unsigned i = 0; i < POLICIES; i++) {
        char hot[300], hot_text[400], policy[64], out[300], name[32];
        snprintf(name, sizeof(name), "hot-%u", i);
        mount_tmpfs(name, 16384, hot, sizeof(hot));
        snprintf(hot_text, sizeof(hot_text), "STEPWATCH_HOT_DIR=%s", hot);
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, hot_text, NULL};
        struct run plain = {0}, run = {.env = env, .out = out};
        struct tally tally;
        run_plain(&plain, "count", "80000", NULL);
        run_start(&run, "count", "80000", NULL);
        CHECK(run_ready(&run));
        fill_up(hot);
        run_go(&run);
        run_finish(&run);
        tally_read(&tally, out);
        check_bounded(&run, &plain, &tally);
        CHECK_EQ(tally.closed, 1);
        if (strcmp(policies[i], "drop") == 0) {
            CHECK(tally.dropped > 0);
        }
        run_free(&plain);
        run_free(&run);
    }
}

/* The file system of the home file becomes full while recording, under every policy. */
static void home_full(const char *out)
{
    struct run plain = {0};
    run_plain(&plain, "count", "100000", NULL);
    for (unsigned i = 0; i < POLICIES; i++) {
        char policy[64], folder[400];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        snprintf(folder, sizeof(folder), "%s/run-%u", out, i);
        const char *const env[] = {policy, NULL};
        struct run run = {.env = env, .out = folder};
        struct tally tally;
        char **paths;
        run_whole(&run, "count", "100000", NULL);
        tally_read(&tally, folder);
        check_bounded(&run, &plain, &tally);
        if (strcmp(policies[i], "stream") == 0) {
            CHECK(tally.dropped > 0);
            CHECK_EQ(tally.first_error, 28); /* ENOSPC */
        }
        size_t count = list_files(folder, "", &paths);
        for (size_t j = 0; j < count; j++) {
            (void)unlink(paths[j]);
        }
        free_files(paths, count);
        run_free(&run);
    }
    run_free(&plain);
}

static void home_on_full_memory(void)
{
    char out[300];
    need_mounts();
    mount_tmpfs("out", 2048, out, sizeof(out));
    home_full(out);
}

static bool command(const char *format, const char *argument, const char *more)
{
    char line[1000];
    snprintf(line, sizeof(line), format, argument, more);
    return system(line) == 0;
}

static void home_on_full_disk(void)
{
    char image[300], out[300];
    need_mounts();
    snprintf(image, sizeof(image), "%s/disk", crash_dir);
    snprintf(out, sizeof(out), "%s/out", crash_dir);
    int fd = creat(image, 0600);
    if (fd < 0 || ftruncate(fd, 4 << 20) || close(fd) || mkdir(out, 0700)) {
        crash_skip("no image of a disk can be made");
    }
    if (!command("mkfs.ext4 -q -F %s >%s 2>&1", image, "/dev/null") ||
        !command("mount -o loop %s %s 2>/dev/null", image, out)) {
        crash_skip("needs mkfs.ext4 and a loop device");
    }
    home_full(out);
    (void)umount(out);
}

/* Nothing can be written from the first byte on: one line, and nothing is left lying around. */
static void home_full_from_the_start(void)
{
    struct run plain = {0};
    struct tally tally;
    char out[300];
    char **paths;
    need_mounts();
    mount_tmpfs("out", 64, out, sizeof(out));
    fill_up(out);
    struct run run = {.out = out};
    run_plain(&plain, "count", "1000", NULL);
    run_whole(&run, "count", "1000", NULL);
    check_same(&run, &plain);
    check_said(&run, true);
    tally_read(&tally, out);
    CHECK_EQ(tally.present, 0);
    size_t count = list_files(out, ".stepwatch", &paths);
    CHECK_EQ(count, 0);
    free_files(paths, count);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

/* There is room for the beginning of the file and not for all of it. */
static void home_nearly_full_from_the_start(void)
{
    need_mounts();
    for (unsigned kib = 8; kib <= 64; kib += 8) {
        struct run plain = {0};
        struct tally tally;
        char out[300], name[32];
        snprintf(name, sizeof(name), "out-%u", kib);
        mount_tmpfs(name, kib, out, sizeof(out));
        struct run run = {.out = out};
        run_plain(&plain, "count", "1000", NULL);
        run_whole(&run, "count", "1000", NULL);
        check_same(&run, &plain);
        check_said(&run, true);
        tally_read(&tally, out);
        if (tally.files) {
            CHECK_EQ(tally.counted, tally.present);
            CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
        }
        run_free(&plain);
        run_free(&run);
    }
}

static void limit_size(void *arg)
{
    const struct rlimit both = {.rlim_cur = *(rlim_t *)arg, .rlim_max = *(rlim_t *)arg};
    setrlimit(RLIMIT_FSIZE, &both);
}

static void limited(rlim_t limit, bool any)
{
    for (unsigned i = 0; i < POLICIES; i++) {
        char policy[64], out[300];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, NULL};
        struct run plain = {0};
        struct run run = {.env = env, .out = out, .prepare = limit_size, .arg = &limit};
        struct tally tally;
        run_plain(&plain, "count", "60000", NULL);
        run_whole(&run, "count", "60000", NULL);
        check_same(&run, &plain);
        tally_read(&tally, out);
        CHECK_EQ(tally.files, any ? 1 : 0);
        /* Without its names and statistics a file is not whole even if every event is accounted for. */
        check_said(&run, tally.dropped || tally.steps_dropped || tally.damaged || !any);
        if (tally.files) {
            CHECK_EQ(tally.counted, tally.present);
            CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
            CHECK_EQ(tally.steps + tally.steps_dropped, run_steps(&run));
        }
        CHECK_EQ(hot_files(), 0);
        run_free(&plain);
        run_free(&run);
    }
}

static void size_limit_nothing(void)
{
    if (CRASH_TSAN) {
        crash_skip("the sanitizer cannot start under this limit");
    }
    limited(0, false);
}
static void size_limit_one_page(void)
{
    limited(4096, true);
}
static void size_limit_one_mib(void)
{
    limited(1 << 20, true);
}

/* RLIMIT_FSIZE is lowered below what the files have already. */
static void size_limit_lowered(void)
{
    static const char *const limits[] = {"0", "65536", "2000000"};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = 0; j < POLICIES; j++) {
            char policy[64], out[300];
            snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[j]);
            snprintf(out, sizeof(out), "%s/run-%u-%u", crash_dir, i, j);
            const char *const env[] = {policy, NULL};
            struct run plain = {0}, run = {.env = env, .out = out};
            struct tally tally;
            run_plain(&plain, "files", "lower", limits[i], NULL);
            run_whole(&run, "files", "lower", limits[i], NULL);
            check_same(&run, &plain);
            tally_read(&tally, out);
            CHECK_EQ(tally.files, 1);
            CHECK_EQ(tally.counted, tally.present);
            CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
            /* With the limit at 0 not even the file can be closed; what it holds is in memory still. */
            check_said(&run, tally.dropped || tally.killed || tally.damaged);
            if (crash_failures()) {
                fprintf(stderr,
                        "  limit %s, policy %s: present %llu, dropped %llu, "
                        "overwritten %llu, killed %zu, hot %zu; %s",
                        limits[i], policies[j], (unsigned long long)tally.present,
                        (unsigned long long)tally.dropped,
                        (unsigned long long)tally.overwritten, tally.killed,
                        tally.hot_used, run.err_text);
            }
            run_free(&plain);
            run_free(&run);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(small_memory),
        CASE(memory_fills_up),
        CASE(home_on_full_memory),
        CASE(home_on_full_disk),
        CASE(home_full_from_the_start),
        CASE(home_nearly_full_from_the_start),
        CASE(size_limit_nothing),
        CASE(size_limit_one_page),
        CASE(size_limit_one_mib),
        CASE(size_limit_lowered),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
