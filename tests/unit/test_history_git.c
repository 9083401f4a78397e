/* The state of git work trees that tests compose, sound ones and others. */
#include "history_fixture.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct place tree_new(const char *head)
{
    struct place place = place_new();
    make_folders(&place, ".git/refs/heads");
    make_folders(&place, "src/deep");
    write_text(in(&place, "src/deep/train.py"), "pass\n");
    write_text(in(&place, ".git/HEAD"), head);
    return place;
}

static void no_work_tree(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_git_state git;
    assert_int_equal(sw_git_read(place.path, &git), SW_ENOTFOUND);
    assert_int_equal(sw_git_read(in(&place, "missing"), &git), SW_ENOTFOUND);
    write_text(in(&place, ".git"), "something else\n");
    assert_int_equal(sw_git_read(place.path, &git), SW_ENOTFOUND);
    place_free(&place);
}

static void branches(void **state)
{
    (void)state;
    struct place place = tree_new("ref: refs/heads/main\n");
    sw_git_state git;
    /* A branch without a commit. */
    assert_int_equal(sw_git_read(in(&place, "src/deep/train.py"), &git), SW_OK);
    assert_string_equal(git.branch, "main");
    assert_string_equal(git.commit, "");
    assert_int_equal(git.dirty, -1);
    /* Packed, among others whose names begin alike. */
    write_text(in(&place, ".git/packed-refs"),
               "# pack-refs with: peeled fully-peeled sorted\n" HASH_B
               " refs/heads/main2\n" HASH_B " refs/heads/mai\n" HASH_A
               " refs/heads/main\n^" HASH_B "\n");
    assert_int_equal(sw_git_read(in(&place, "src"), &git), SW_OK);
    assert_string_equal(git.commit, HASH_A);
    /* A file of its own is newer. */
    write_text(in(&place, ".git/refs/heads/main"), HASH_B "\r\n");
    assert_int_equal(sw_git_read(in(&place, "src"), &git), SW_OK);
    assert_string_equal(git.commit, HASH_B);
    place_free(&place);
}

static void detached(void **state)
{
    (void)state;
    static const char long_hash[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    struct place place = tree_new(HASH_A);
    sw_git_state git;
    assert_int_equal(sw_git_read(place.path, &git), SW_OK);
    assert_string_equal(git.commit, HASH_A);
    assert_string_equal(git.branch, "");
    write_text(in(&place, ".git/HEAD"), long_hash);
    assert_int_equal(sw_git_read(place.path, &git), SW_OK);
    assert_string_equal(git.commit, long_hash);
    place_free(&place);
}

static void further_work_tree(void **state)
{
    (void)state;
    struct place place = tree_new("ref: refs/heads/main\n");
    sw_git_state git;
    make_folders(&place, "further");
    make_folders(&place, ".git/worktrees/further");
    write_text(in(&place, "further/.git"), "gitdir: ../.git/worktrees/further\n");
    write_text(in(&place, ".git/worktrees/further/HEAD"), "ref: refs/heads/topic\n");
    write_text(in(&place, ".git/worktrees/further/commondir"), "../..\n");
    write_text(in(&place, ".git/refs/heads/topic"), HASH_B "\n");
    assert_int_equal(sw_git_read(in(&place, "further"), &git), SW_OK);
    assert_string_equal(git.branch, "topic");
    assert_string_equal(git.commit, HASH_B);
    place_free(&place);
}

static void strange_heads(void **state)
{
    (void)state;
    static const char *const heads[] = {
        "",
        "\n",
        "ref: ",
        "ref: refs/../../../../../etc/passwd",
        "ref: ../outside",
        "ref: refs/heads/.invalid",
        "aaaaaaaaaaaaaaaaaaaa",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        HASH_A "0",
    };
    struct place place = tree_new("");
    sw_git_state git;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        write_text(in(&place, ".git/HEAD"), heads[i]);
        assert_int_equal(sw_git_read(place.path, &git), SW_ENOTFOUND);
    }
    /* References in a circle. */
    write_text(in(&place, ".git/HEAD"), "ref: refs/heads/a");
    write_text(in(&place, ".git/refs/heads/a"), "ref: refs/heads/b");
    write_text(in(&place, ".git/refs/heads/b"), "ref: refs/heads/a");
    assert_int_equal(sw_git_read(place.path, &git), SW_OK);
    assert_string_equal(git.commit, "");
    /* Far too large, and something that would keep a reader waiting. */
    assert_int_equal(truncate(in(&place, ".git/HEAD"), 1 << 28), 0);
    assert_int_equal(sw_git_read(place.path, &git), SW_ENOTFOUND);
    assert_int_equal(unlink(in(&place, ".git/HEAD")), 0);
    assert_int_equal(mkfifo(in(&place, ".git/HEAD"), 0600), 0);
    assert_int_equal(sw_git_read(place.path, &git), SW_ENOTFOUND);
    place_free(&place);
}

/* --- the index --- */

struct index {
    unsigned char bytes[4096];
    size_t used;
    unsigned version;
    char before[256];
};

static void put(struct index *index, uint64_t value, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        index->bytes[index->used++] = (unsigned char)(value >> 8 * i);
    }
}

static void begin_index(struct index *index, unsigned version, unsigned entries)
{
    *index = (struct index){.version = version};
    memcpy(index->bytes, "DIRC", 4);
    index->used = 4;
    put(index, version, 4);
    put(index, entries, 4);
}

static void put_entry(struct index *index, const char *name, unsigned size,
                      unsigned flags, unsigned more)
{
    const size_t start = index->used;
    for (int i = 0; i < 6; i++) {
        put(index, 7, 4);
    }
    put(index, 0100644, 4);
    put(index, 0, 4);
    put(index, 0, 4);
    put(index, size, 4);
    for (int i = 0; i < 5; i++) {
        put(index, 0xdeadbeef, 4);
    }
    put(index, flags | (strlen(name) & 0xfff), 2);
    if (flags & 0x4000) {
        put(index, more, 2);
    }
    size_t kept = 0;
    if (index->version == 4) {
        while (name[kept] && name[kept] == index->before[kept]) {
            kept++;
        }
        put(index, strlen(index->before) - kept, 1);
        snprintf(index->before, sizeof index->before, "%s", name);
    }
    strcpy((char *)index->bytes + index->used, name + kept);
    index->used += strlen(name + kept) + 1;
    while (index->version < 4 && (index->used - start) % 8) {
        index->bytes[index->used++] = 0;
    }
}

static void end_index(struct index *index, const struct place *place)
{
    for (int i = 0; i < 5; i++) {
        put(index, 0x12345678, 4);
    }
    write_bytes(in(place, ".git/index"), index->bytes, index->used);
}

static int dirty(const struct place *place)
{
    sw_git_state git;
    assert_int_equal(sw_git_read(place->path, &git), SW_OK);
    return git.dirty;
}

static void changed_files(void **state)
{
    (void)state;
    struct place place = tree_new(HASH_A);
    struct index index;
    write_text(in(&place, "src/deep/other.py"), "12345");
    for (unsigned version = 2; version <= 4; version++) {
        const unsigned extended = version > 2 ? 0x4000 : 0;
        begin_index(&index, version, 2);
        put_entry(&index, "src/deep/other.py", 5, 0, 0);
        put_entry(&index, "src/deep/train.py", 5, extended, 0);
        end_index(&index, &place);
        assert_int_equal(dirty(&place), -1); /* the same sizes say nothing */

        begin_index(&index, version, 2);
        put_entry(&index, "src/deep/other.py", 5, 0, 0);
        put_entry(&index, "src/deep/train.py", 6, extended, 0);
        end_index(&index, &place);
        assert_int_equal(dirty(&place), 1);

        /* Each beginning of a file is read as far as it goes. */
        for (size_t length = 0; length < index.used; length++) {
            write_bytes(in(&place, ".git/index"), index.bytes, length);
            const int result = dirty(&place);
            assert_true(result == -1 || result == 1);
        }

        begin_index(&index, version, 1);
        put_entry(&index, "src/deep/deleted.py", 5, 0, 0);
        end_index(&index, &place);
        assert_int_equal(dirty(&place), 1);

        begin_index(&index, version, 2);
        put_entry(&index, "src/deep/deleted.py", 5, 0x8000, 0); /* assumed valid */
        put_entry(&index, "src/deep/train.py", 0, 0, 0);        /* git was not sure */
        end_index(&index, &place);
        assert_int_equal(dirty(&place), -1);

        begin_index(&index, version, 1);
        put_entry(&index, "src/deep/train.py", 5, 0x1000, 0); /* not merged */
        end_index(&index, &place);
        assert_int_equal(dirty(&place), 1);
    }
    begin_index(&index, 3, 1);
    put_entry(&index, "src/deep/deleted.py", 5, 0x4000, 0x4000); /* not checked out */
    end_index(&index, &place);
    assert_int_equal(dirty(&place), -1);
    begin_index(&index, 5, 1);
    put_entry(&index, "src/deep/train.py", 6, 0, 0);
    end_index(&index, &place);
    assert_int_equal(dirty(&place), -1);
    place_free(&place);
}

/* Bytes that nobody vouches for. */
static void any_index(void **state)
{
    (void)state;
    struct place place = tree_new(HASH_A);
    struct index index;
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        begin_index(&index, 2 + (unsigned)round % 3, 4000000000u);
        for (size_t i = 0; i < 600; i++) {
            seed = seed * 1103515245 + 12345;
            put(&index, seed >> 16 & (i % 7 ? 0xff : 0x80), 1);
        }
        end_index(&index, &place);
        const int result = dirty(&place);
        assert_true(result == -1 || result == 1);
    }
    place_free(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_work_tree),  cmocka_unit_test(branches),
        cmocka_unit_test(detached),      cmocka_unit_test(further_work_tree),
        cmocka_unit_test(strange_heads), cmocka_unit_test(changed_files),
        cmocka_unit_test(any_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
