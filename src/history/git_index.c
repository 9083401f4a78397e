/* The index of a git work tree (gitformat-index): what size each tracked file had when git last looked. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/os.h"
#include "history/git.h"
#include "history/small_file.h"

#define INDEX_MOST (32u << 20)
#define LOOK_NS 10000000 /* a program waits to be started meanwhile */
#define LOOK_EVERY 64    /* files between two looks at the clock */

enum { HEADER = 12, STAT_BYTES = 40, MODE_AT = 24, SIZE_AT = 36 };
enum { TYPE_MASK = 0170000, REGULAR = 0100000 };
enum { ASSUME_VALID = 0x8000, EXTENDED = 0x4000, STAGE = 0x3000 };
enum { SKIP_WORKTREE = 0x4000 };

struct index {
    const unsigned char *at, *end;
    uint32_t version, count;
    size_t hash_bytes;
    char name[PATH_MAX]; /* of the entry that was read last */
};

struct entry {
    uint32_t mode, size;
    bool unmerged, ignored;
};

static uint32_t read_32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

static unsigned read_16(const unsigned char *at)
{
    return (unsigned)(at[0] << 8 | at[1]);
}

/* Version 4: how many bytes of the name before are dropped, seven bits a byte. */
static bool read_strip(struct index *index, size_t *out)
{
    size_t value = 0;
    for (int i = 0; i < 4 && index->at < index->end; i++) {
        const unsigned char byte = *index->at++;
        value = (i ? value + 1 : 0) << 7 | (byte & 0x7f);
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_name(struct index *index, const unsigned char *entry)
{
    size_t kept = 0;
    if (index->version == 4) {
        size_t strip;
        const size_t before = strlen(index->name);
        if (!read_strip(index, &strip) || strip > before) {
            return false;
        }
        kept = before - strip;
    }
    const unsigned char *zero = memchr(index->at, 0, (size_t)(index->end - index->at));
    if (!zero) {
        return false;
    }
    const size_t length = (size_t)(zero - index->at);
    if (kept + length >= sizeof index->name || kept + length == 0) {
        return false;
    }
    memcpy(index->name + kept, index->at, length + 1);
    index->at = zero + 1;
    if (index->version < 4) { /* padded to eight bytes, at least the NUL */
        const size_t used = ((size_t)(zero - entry) + 8) & ~(size_t)7;
        if (used > (size_t)(index->end - entry)) {
            return false;
        }
        index->at = entry + used;
    }
    return true;
}

static bool read_entry(struct index *index, struct entry *out)
{
    const unsigned char *entry = index->at;
    const size_t fixed = STAT_BYTES + index->hash_bytes + 2;
    if ((size_t)(index->end - entry) < fixed + 2) {
        return false;
    }
    const unsigned flags = read_16(entry + fixed - 2);
    index->at += fixed;
    unsigned more = 0;
    if (flags & EXTENDED) {
        if (index->version < 3) {
            return false;
        }
        more = read_16(index->at);
        index->at += 2;
    }
    *out = (struct entry){.mode = read_32(entry + MODE_AT),
                          .size = read_32(entry + SIZE_AT),
                          .unmerged = (flags & STAGE) != 0,
                          .ignored = (flags & ASSUME_VALID) || (more & SKIP_WORKTREE)};
    return read_name(index, entry);
}

/* A size of 0 is also what git writes when it is not sure. A size that is the same says nothing. */
static bool is_changed(const struct entry *entry, const char *work_tree, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    if (entry->unmerged) {
        return true;
    }
    if (entry->ignored || (entry->mode & TYPE_MASK) != REGULAR ||
        !sw__join_path(path, sizeof path, work_tree, name)) {
        return false;
    }
    if (lstat(path, &status) != 0) {
        return errno == ENOENT || errno == ENOTDIR;
    }
    return !S_ISREG(status.st_mode) ||
           (entry->size != 0 && (uint32_t)status.st_size != entry->size);
}

int sw__git_dirty(const char *git_folder, const char *work_tree, size_t hash_bytes)
{
    char path[PATH_MAX];
    size_t length = 0;
    char *bytes = sw__join_path(path, sizeof path, git_folder, "index")
                      ? sw__small_file(path, INDEX_MOST, &length)
                      : NULL;
    int dirty = -1;
    if (!bytes || length < HEADER + hash_bytes || memcmp(bytes, "DIRC", 4) != 0) {
        goto out;
    }
    struct index index = {.at = (const unsigned char *)bytes + HEADER,
                          .end = (const unsigned char *)bytes + length - hash_bytes,
                          .version = read_32((const unsigned char *)bytes + 4),
                          .count = read_32((const unsigned char *)bytes + 8),
                          .hash_bytes = hash_bytes};
    if (index.version < 2 || index.version > 4) {
        goto out;
    }
    const uint64_t until = sw__os_now_ns() + LOOK_NS;
    for (uint32_t i = 0; i < index.count && dirty < 0; i++) {
        struct entry entry;
        if (!read_entry(&index, &entry) ||
            (i % LOOK_EVERY == 0 && sw__os_now_ns() > until)) {
            break;
        }
        dirty = is_changed(&entry, work_tree, index.name) ? 1 : -1;
    }
out:
    sw__free(bytes);
    return dirty;
}
