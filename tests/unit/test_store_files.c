/* Home and hot files on their own: slots, caps, places, and pages that vanish. */
#include "recorder_util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "store/home.h"
#include "store/hot.h"

static struct sw__fmt_block header_of(unsigned kind, uint32_t size, uint64_t sequence)
{
    struct sw__fmt_block header;
    memset(&header, 0, sizeof header);
    header.magic = SW__FMT_BLOCK_MAGIC;
    header.kind = (uint16_t)kind;
    header.size = size;
    header.sequence = sequence;
    return header;
}

static void test_home_slots(void **state)
{
    (void)state;
    struct sw__home home;
    static uint8_t body[SW__FMT_CHUNK - sizeof(struct sw__fmt_block)];
    uint64_t slots[4] = {0};
    assert_int_equal(sw__home_create(&home, ru_path("folder"), "x", 0, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        struct sw__fmt_block header = header_of(SW__BLOCK_EVENTS, SW__FMT_CHUNK, i);
        assert_int_equal(
            sw__home_put(&home, &header, body, sizeof body, &slots[i], false), 0);
        assert_int_equal(slots[i], SW__FMT_PAGE + i * SW__FMT_CHUNK);
    }
    /* The same slot again: the block is written over, the file does not grow. */
    struct sw__fmt_block header = header_of(SW__BLOCK_EVENTS, SW__FMT_CHUNK, 1);
    uint64_t end = home.end;
    assert_int_equal(sw__home_put(&home, &header, body, 64, &slots[1], false), 0);
    assert_int_equal(home.end, end);
    assert_int_equal(slots[1], SW__FMT_PAGE + SW__FMT_CHUNK);

    /* Given up, its place is taken by the next whole chunk, and by no smaller block. */
    sw__home_release(&home, slots[1]);
    sw__home_release(&home, slots[2]);
    struct sw__fmt_block seen;
    assert_int_equal(pread(home.fd, &seen, sizeof seen, (off_t)slots[1]), sizeof seen);
    assert_int_equal(seen.kind, SW__BLOCK_FREE);
    assert_int_equal(seen.size, SW__FMT_CHUNK);
    uint64_t small = 0;
    struct sw__fmt_block names = header_of(SW__BLOCK_DEFS, 16384, 0);
    assert_int_equal(sw__home_put(&home, &names, body, 500, &small, false), 0);
    assert_int_equal(small, end);
    uint64_t cut = 0;
    assert_int_equal(sw__home_put(&home, &header, body, 100, &cut, true), 0);
    assert_int_equal(cut, end + 16384);
    assert_int_equal(home.end, end + 16384 + SW__FMT_PAGE);
    uint64_t fresh[3] = {0};
    end = home.end;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(
            sw__home_put(&home, &header, body, sizeof body, &fresh[i], false), 0);
    }
    assert_int_equal(fresh[0], slots[2]); /* the newest first */
    assert_int_equal(fresh[1], slots[1]);
    assert_int_equal(fresh[2], end);
    assert_int_equal(home.free_count, 0);

    /* Blocks end where the file does, whatever they use. */
    struct stat facts;
    assert_int_equal(fstat(home.fd, &facts), 0);
    assert_int_equal(facts.st_size, home.end);
    assert_int_equal(facts.st_mode & 0777, 0600);
    sw__home_close(&home);
    assert_int_equal(home.fd, -1);
}

static void test_home_cap(void **state)
{
    (void)state;
    struct sw__home home;
    static uint8_t body[1000];
    const uint64_t cap = 2 * SW__FMT_CHUNK;
    assert_int_equal(sw__home_create(&home, ru_path("folder"), "x", cap, NULL), 0);
    struct sw__fmt_block header = header_of(SW__BLOCK_EVENTS, SW__FMT_CHUNK, 0);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t slot = 0;
        assert_int_equal(sw__home_put(&home, &header, body, sizeof body, &slot, false),
                         0);
    }
    uint64_t slot = 0;
    assert_int_equal(sw__home_put(&home, &header, body, sizeof body, &slot, false),
                     SW_ELIMIT);
    assert_int_equal(slot, 0);
    assert_int_equal(home.errors, 0); /* A cap is no failed write. */
    struct sw__fmt_block steps = header_of(SW__BLOCK_STEPS, SW__FMT_CHUNK, 0);
    assert_int_equal(sw__home_put(&home, &steps, body, sizeof body, &slot, false), 0);
    /* A freed place is below the cap. */
    sw__home_release(&home, SW__FMT_PAGE);
    slot = 0;
    assert_int_equal(sw__home_put(&home, &header, body, sizeof body, &slot, false), 0);
    assert_int_equal(slot, SW__FMT_PAGE);
    sw__home_close(&home);
}

static void test_home_names(void **state)
{
    (void)state;
    struct sw__home first, second;
    sw_error_info info = {0};
    assert_int_equal(sw__home_create(&first, ru_path("a/b/c"), "x", 0, NULL), 0);
    assert_int_equal(sw__home_create(&second, ru_path("a/b/c"), "x", 0, NULL), 0);
    assert_string_equal(first.path, ru_path("a/b/c/x.stepwatch"));
    assert_string_equal(second.path, ru_path("a/b/c/x-1.stepwatch"));
    struct stat facts;
    assert_int_equal(stat(ru_path("a/b"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    sw__home_close(&first);
    sw__home_close(&second);
    /* Not through a file, nor over a link that waits there. */
    assert_int_equal(
        sw__home_create(&first, ru_path("a/b/c/x.stepwatch/d"), "x", 0, &info), SW_EOPEN);
    assert_true(info.message[0] != 0);
    assert_int_equal(symlink("/nowhere", ru_path("a/b/c/y.stepwatch")), 0);
    assert_int_equal(sw__home_create(&first, ru_path("a/b/c"), "y", 0, NULL), 0);
    assert_string_equal(first.path, ru_path("a/b/c/y-1.stepwatch"));
    sw__home_close(&first);
}

/* The number of our descriptor may become the program's; its file must not get our bytes. */
static void test_home_descriptor_taken(void **state)
{
    (void)state;
    struct sw__home home;
    uint64_t slot = 0;
    struct sw__fmt_block header = header_of(SW__BLOCK_DEFS, 16384, 0);
    assert_int_equal(sw__home_create(&home, ru_path("folder"), "x", 0, NULL), 0);
    assert_true(sw__home_check(&home));
    int theirs = open(ru_path("theirs"), O_RDWR | O_CREAT, 0600);
    assert_int_equal(dup2(theirs, home.fd), home.fd);
    int number = home.fd;
    assert_true(sw__home_check(&home)); /* The file is still there under its name. */
    assert_int_not_equal(home.fd, number);
    assert_int_equal(sw__home_put(&home, &header, "x", 1, &slot, false), 0);
    assert_true(ru_file_size(home.path) > 0);
    /* Now the name is another file's. */
    int other = home.fd;
    assert_int_equal(dup2(theirs, other), other);
    assert_int_equal(rename(ru_path("theirs"), home.path), 0);
    assert_false(sw__home_check(&home));
    assert_true(home.gone);
    slot = 0;
    assert_int_equal(sw__home_put(&home, &header, "x", 1, &slot, false), SW_EWRITE);
    sw__home_close(&home);
    assert_int_equal(ru_file_size(ru_path("folder/x.stepwatch")), 0);
    assert_true(fcntl(number, F_GETFD) >= 0); /* They are theirs: not closed. */
    assert_true(fcntl(other, F_GETFD) >= 0);
    close(number);
    close(other);
    close(theirs);
    /* And a file that was removed. */
    assert_int_equal(sw__home_create(&home, ru_path("folder"), "y", 0, NULL), 0);
    assert_int_equal(unlink(home.path), 0);
    assert_false(sw__home_check(&home));
    sw__home_close(&home);
}

static bool starts_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void test_hot_places(void **state)
{
    (void)state;
    struct sw__hot hot;
    const uint64_t limit = 4u << 20;
    assert_int_equal(mkdir(ru_path("hot"), 0700), 0);
    const struct sw__hot_place asked = {.asked = ru_path("hot"), .run_dir = ru_folder};
    assert_int_equal(sw__hot_create(&hot, &asked, limit, 65536, NULL), 0);
    assert_true(starts_with(hot.path, ru_path("hot/stepwatch-")));
    struct stat facts;
    assert_int_equal(stat(hot.path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    assert_int_equal(facts.st_size, 65536);
    /* Blocks come in order, zeroed, whole pages, up to the limit; and they are in the file. */
    uint64_t next = SW__FMT_PAGE;
    for (;;) {
        struct sw__fmt_block *block = sw__hot_take(&hot, SW__BLOCK_DEFS, 16384);
        if (!block) {
            break;
        }
        assert_int_equal(block->address, next);
        assert_int_equal(block->size, 16384);
        assert_int_equal(atomic_load(&block->used), 0);
        assert_ptr_equal(block, hot.base + next);
        memset(block + 1, 0xee, 16384 - sizeof *block);
        next += 16384;
    }
    assert_true(next + 16384 > limit && next <= limit);
    assert_int_equal(stat(hot.path, &facts), 0);
    assert_true((uint64_t)facts.st_size >= next && (uint64_t)facts.st_size <= limit);
    char path[1024];
    snprintf(path, sizeof path, "%s", hot.path);
    sw__hot_close(&hot, true, false);
    assert_int_equal(access(path, F_OK), -1);
    assert_null(hot.base);

    /* Chunks leave the reserve to others. */
    assert_int_equal(sw__hot_create(&hot, &asked, limit, 65536, NULL), 0);
    bool busy;
    uint64_t chunks = 0;
    while (sw__hot_try_take(&hot, SW__BLOCK_FREE, SW__FMT_CHUNK, &busy)) {
        chunks++;
    }
    assert_false(busy);
    assert_true(chunks * SW__FMT_CHUNK >= limit / 2 && chunks * SW__FMT_CHUNK < limit);
    assert_false(sw__hot_has_room(&hot, SW__FMT_CHUNK));
    assert_non_null(sw__hot_take(&hot, SW__BLOCK_NODES, 16384));
    sw__hot_close(&hot, true, false);

    /* Places that will not do are passed over. */
    const char *const unusable[] = {"/proc/self", "/nowhere/at all", "/etc/passwd",
                                    "relative/none"};
    for (size_t i = 0; i < SW__COUNTOF(unusable); i++) {
        const struct sw__hot_place place = {.asked = unusable[i], .run_dir = ru_folder};
        assert_int_equal(sw__hot_create(&hot, &place, limit, 65536, NULL), 0);
        assert_false(starts_with(hot.path, unusable[i]));
        assert_true(hot.where[0] != 0);
        assert_non_null(sw__hot_take(&hot, SW__BLOCK_DEFS, 4096));
        sw__hot_close(&hot, true, false);
    }
    /* A private sub-folder that somebody else could have prepared is not used. */
    char own[128];
    snprintf(own, sizeof own, "%s/stepwatch-%u", ru_path("open"), (unsigned)geteuid());
    assert_int_equal(mkdir(ru_path("open"), 0700), 0);
    assert_int_equal(mkdir(own, 0700), 0);
    assert_int_equal(chmod(own, 0777), 0);
    const struct sw__hot_place open_place = {.asked = ru_path("open")};
    assert_int_equal(sw__hot_create(&hot, &open_place, limit, 65536, NULL), 0);
    assert_false(starts_with(hot.path, ru_path("open")));
    sw__hot_close(&hot, true, false);
}

/* End to end: the folder that was asked for, or another. */
static void test_hot_dir_of_a_recording(void **state)
{
    (void)state;
    const char *const folders[] = {ru_path("mine"), "/nowhere/at all"};
    assert_int_equal(mkdir(folders[0], 0700), 0);
    for (size_t i = 0; i < 2; i++) {
        struct sw__fmt_super super;
        char path[1100];
        ru_start((sw_config){.hot_dir = folders[i], .out = ru_path(i ? "two" : "one")});
        (void)sw_trace_path(path, sizeof path);
        int fd = open(path, O_RDONLY);
        assert_int_equal(pread(fd, &super, sizeof super, 0), sizeof super);
        close(fd);
        assert_int_equal(starts_with(super.hot_path, folders[i]), i == 0);
        assert_int_equal(access(super.hot_path, F_OK), 0);
        SW_SECTION("x") {
        }
        struct ru_trace trace = ru_finish();
        assert_int_equal(access(super.hot_path, F_OK), -1);
        assert_int_equal(ru_calls(&trace, "x"), 1);
        assert_non_null(sw_trace_fact(trace.trace, "hot_memory"));
        ru_free(&trace);
    }
}

static sigjmp_buf back;
static volatile sig_atomic_t theirs_called;

static void their_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    theirs_called = info->si_code > 0 ? 1 : 2;
    siglongjmp(back, 1);
}

static void their_old_handler(int number)
{
    theirs_called = number;
    siglongjmp(back, 1);
}

static volatile uint8_t *map_file(const char *path, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    ru_must(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ru_must(pages != MAP_FAILED);
    close(fd);
    return pages;
}

/* Ours are healed and counted; others go to the handler that was there before. */
static void chain_handlers(void *arg)
{
    bool modern = *(const bool *)arg;
    struct sigaction theirs;
    memset(&theirs, 0, sizeof theirs);
    if (modern) {
        theirs.sa_sigaction = their_handler;
        theirs.sa_flags = SA_SIGINFO;
    } else {
        theirs.sa_handler = their_old_handler;
    }
    ru_must(sigaction(SIGBUS, &theirs, NULL) == 0);
    volatile uint8_t *ours = map_file(ru_path("ours"), 16384);
    volatile uint8_t *other = map_file(ru_path("other"), 16384);
    static _Atomic uint64_t count;
    ru_must(sw__sigbus_watch((const void *)ours, 16384, &count) == 0);
    ours[0] = 1;
    ru_must(truncate(ru_path("ours"), 4096) == 0);
    ru_must(truncate(ru_path("other"), 0) == 0);
    ours[5000] = 7; /* The page is gone; the store happens all the same. */
    ours[9000] = 8;
    ru_must(ours[5000] == 7 && ours[9000] == 8 && ours[0] == 1);
    ru_must(sw__sigbus_count((const void *)ours) == 2 && atomic_load(&count) == 2);
    ru_must(theirs_called == 0);
    if (sigsetjmp(back, 1) == 0) {
        other[100] = 1;
        ru_must(false);
    }
    ru_must(theirs_called == (modern ? 1 : SIGBUS));
    /* No longer ours: theirs too. */
    sw__sigbus_unwatch((const void *)ours);
    ru_must(sw__sigbus_count((const void *)ours) == 0);
    theirs_called = 0;
    if (sigsetjmp(back, 1) == 0) {
        ours[13000] = 1;
        ru_must(false);
    }
    ru_must(theirs_called != 0);
    /* One that was sent and not caused. */
    theirs_called = 0;
    if (sigsetjmp(back, 1) == 0) {
        raise(SIGBUS);
        ru_must(false);
    }
    ru_must(theirs_called != 0);
}

static void test_sigbus_chain(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool modern = i == 1;
        ru_child(chain_handlers, &modern);
    }
}

/* A recording whose hot file is cut goes on and says what it lost. */
static void record_over_a_hole(void *arg)
{
    (void)arg;
    struct sw__fmt_super super;
    char path[1100];
    ru_start((sw_config){.policy = "ring", .max_mb = 4});
    SW_SECTION("before") {
    }
    (void)sw_trace_path(path, sizeof path);
    int fd = open(path, O_RDONLY);
    ru_must(pread(fd, &super, sizeof super, 0) == sizeof super);
    close(fd);
    ru_must(truncate(super.hot_path, 0) == 0);
    for (int i = 0; i < 100000; i++) {
        SW_SECTION("after") {
        }
    }
}

static void test_hot_file_cut(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    /* The count in the superblock may have to be healed from within the handler, and the sanitizer
     * keeps SIGBUS blocked there. */
    print_message("skipped: the thread sanitizer allows no fault in a signal handler\n");
    skip();
#endif
    /* Statistics may be lost, the program may not; the file must open. */
    ru_child(record_over_a_hole, NULL);
    sw_run *run;
    assert_int_equal(sw_run_open(&run, ru_path("run"), NULL), 0);
    assert_int_equal(sw_run_count(run), 1);
    assert_true(sw_trace_get_info(sw_run_trace(run, 0))->bus_errors > 0);
    sw_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: the handler is put in once, and cmocka puts its own over it in every test, so only
         * a child of a process that never recorded has ours in the place where programs have it. */
        ru_test(test_sigbus_chain), ru_test(test_hot_file_cut),
        ru_test(test_home_slots),   ru_test(test_home_cap),
        ru_test(test_home_names),   ru_test(test_home_descriptor_taken),
        ru_test(test_hot_places),   ru_test(test_hot_dir_of_a_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
