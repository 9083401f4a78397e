/* Writing the home file. */
#include "store/home.h"
#include "base/memory.h"
#include "base/os.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int sw__home_create(struct sw__home *home, const char *folder, const char *stem,
                    uint64_t max_bytes, sw_error_info *info)
{
    memset(home, 0, sizeof(*home));
    home->fd = -1;
    int result = sw__os_mkdirs_private(folder);
    if (result) {
        return sw_error_set(info, SW_EOPEN, "the run directory %s cannot be made: %s",
                            folder, strerror(-result));
    }
    for (unsigned number = 0; number < 1000; number++) {
        char suffix[16] = "";
        if (number) {
            snprintf(suffix, sizeof(suffix), "-%u", number);
        }
        int length = snprintf(home->path, sizeof(home->path), "%s/%s%s.stepwatch", folder,
                              stem, suffix);
        if (length < 0 || (size_t)length >= sizeof(home->path)) {
            return sw_error_set(info, SW_EINVAL,
                                "the path of the run directory %s is too long", folder);
        }
        int fd = sw__os_create_private(home->path);
        if (fd == -EEXIST) {
            continue;
        }
        struct stat facts;
        if (fd >= 0 && fstat(fd, &facts)) {
            int error = errno;
            close(fd);
            fd = -error;
        }
        if (fd < 0) {
            result = sw_error_set(info, SW_EOPEN, "the trace %s cannot be created: %s",
                                  home->path, strerror(-fd));
            home->path[0] = 0;
            if (info) {
                info->os_errno = -fd;
            }
            return result;
        }
        home->fd = fd;
        home->device = facts.st_dev;
        home->inode = facts.st_ino;
        home->end = SW__FMT_PAGE;
        home->max_bytes = max_bytes;
        return 0;
    }
    return sw_error_set(info, SW_EOPEN, "%s holds too many traces of this name", folder);
}

static bool sw__home_is(const struct sw__home *home, int fd, struct stat *facts)
{
    return fstat(fd, facts) == 0 && facts->st_dev == home->device &&
           facts->st_ino == home->inode && facts->st_nlink > 0;
}

/* Programs that close all descriptors close ours as well. The file is still there; the number is not ours to
 * close any more. */
static bool sw__home_open_again(struct sw__home *home, struct stat *facts)
{
    int fd = sw__os_open_write(home->path);
    if (fd >= 0 && sw__home_is(home, fd, facts)) {
        home->fd = fd;
        return true;
    }
    if (fd >= 0) {
        close(fd);
    }
    return false;
}

/* Where the descriptor is closed meanwhile, it is written again, to the file that is opened again. */
static int sw__home_write(struct sw__home *home, const void *from, size_t length,
                          uint64_t offset)
{
    struct stat facts;
    int result =
        sw__os_pwrite_file(home->fd, home->device, home->inode, from, length, offset);
    if (result == -EBADF && sw__home_open_again(home, &facts)) {
        result =
            sw__os_pwrite_file(home->fd, home->device, home->inode, from, length, offset);
    }
    return result;
}

static struct sw__fmt_block sw__home_free_block(uint32_t size)
{
    struct sw__fmt_block block;
    memset(&block, 0, sizeof(block));
    block.magic = SW__FMT_BLOCK_MAGIC;
    block.kind = SW__BLOCK_FREE;
    block.size = size;
    block.thread = UINT32_MAX;
    return block;
}

int sw__home_write_free(int fd, uint64_t slot, uint32_t size)
{
    const struct sw__fmt_block block = sw__home_free_block(size);
    return sw__os_pwrite_all(fd, &block, sizeof(block), slot);
}

static int sw__home_free_slot(struct sw__home *home, uint64_t slot, uint32_t size)
{
    const struct sw__fmt_block block = sw__home_free_block(size);
    return sw__home_write(home, &block, sizeof(block), slot);
}

/* What lay beyond the end of a file that was cut is lost; the room is used as before. */
static void sw__home_count_cut(struct sw__home *home, uint64_t size)
{
    size_t kept = 0;
    home->cuts++;
    for (size_t i = 0; i < home->chunk_count; i++) {
        if (home->chunks[i].slot + home->chunks[i].size > size) {
            home->cut_records += home->chunks[i].records;
            home->event_bytes -= home->chunks[i].size;
            (void)sw__home_free_slot(home, home->chunks[i].slot, home->chunks[i].size);
        } else {
            home->chunks[kept++] = home->chunks[i];
        }
    }
    home->chunk_count = kept;
    /* The file gets its length back, so that one cut is noticed once. */
    if (sw__home_write(home, "", 1, home->end - 1)) {
        home->end = (size + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
        home->end = home->end < SW__FMT_PAGE ? SW__FMT_PAGE : home->end;
    }
}

bool sw__home_check(struct sw__home *home)
{
    struct stat facts;
    if (home->fd < 0 || home->gone) {
        return false;
    }
    if (!sw__home_is(home, home->fd, &facts) && !sw__home_open_again(home, &facts)) {
        home->gone = true;
        home->error = home->error ? home->error : ENOENT;
        return false;
    }
    if (home->started && (uint64_t)facts.st_size < home->end) {
        sw__home_count_cut(home, (uint64_t)facts.st_size);
    }
    return true;
}

static void sw__home_note_chunk(struct sw__home *home, uint64_t slot, uint32_t size,
                                uint32_t records)
{
    if (home->chunk_count == home->chunk_capacity) {
        size_t capacity = home->chunk_capacity ? home->chunk_capacity * 2 : 64;
        struct sw__home_chunk *chunks =
            sw__realloc(home->chunks, capacity, sizeof(*chunks));
        if (!chunks) {
            return;
        }
        home->chunks = chunks;
        home->chunk_capacity = capacity;
    }
    home->chunks[home->chunk_count++] =
        (struct sw__home_chunk){.slot = slot, .size = size, .records = records};
}

static int sw__home_fail(struct sw__home *home, int result)
{
    home->errors++;
    if (!home->error) {
        home->error = -result;
    }
    return result == -ENOSPC || result == -EDQUOT ? SW_ENOSPACE
           : result == -EFBIG                     ? SW_ELIMIT
                                                  : SW_EWRITE;
}

int sw__home_put(struct sw__home *home, const struct sw__fmt_block *header,
                 const void *body, uint32_t used, uint64_t *slot, bool shrink)
{
    struct sw__fmt_block copy;
    uint64_t offset = *slot;
    if (!sw__home_check(home)) {
        return SW_EWRITE;
    }
    memcpy(&copy, header, sizeof(copy));
    atomic_store_explicit(&copy.used, used, memory_order_relaxed);
    if (shrink) {
        copy.size = (uint32_t)((sizeof(copy) + used + SW__FMT_PAGE - 1) / SW__FMT_PAGE *
                               SW__FMT_PAGE);
    }
    bool reused = false;
    const bool events = copy.kind == SW__BLOCK_EVENTS && !offset; /* new ones */
    if (events && home->max_bytes && home->event_bytes + copy.size > home->max_bytes) {
        return SW_ELIMIT;
    }
    if (!offset && !shrink && copy.size == SW__FMT_CHUNK && home->free_count) {
        offset = home->free_slots[home->free_count - 1];
        reused = true;
    } else if (!offset) {
        offset = home->end;
    }
    int result = sw__home_write(home, body, used, offset + sizeof(copy));
    if (!result) {
        result = sw__home_write(home, &copy, sizeof(copy), offset);
    }
    if (!result && offset == home->end) {
        /* A block ends where the file does, so that the last one is whole too. */
        uint64_t last = offset + copy.size;
        if (sizeof(copy) + used < copy.size) {
            result = sw__home_write(home, "", 1, last - 1);
        }
    }
    if (result) {
        /* No stump stays behind the last whole block. Only ever shorter: growing could raise SIGXFSZ. */
        struct stat facts;
        if (offset == home->end && sw__home_is(home, home->fd, &facts) &&
            (uint64_t)facts.st_size > home->end &&
            ftruncate(home->fd, (off_t)home->end)) {
            home->errors++;
        }
        return sw__home_fail(home, result);
    }
    if (reused) {
        home->free_count--;
    } else if (offset == home->end) {
        home->end += copy.size;
    }
    *slot = offset;
    if (events) {
        home->event_bytes += copy.size;
        sw__home_note_chunk(home, offset, copy.size, copy.records);
    }
    return 0;
}

bool sw__home_knows(const struct sw__home *home, uint64_t slot)
{
    for (size_t i = 0; i < home->chunk_count; i++) {
        if (home->chunks[i].slot == slot) {
            return true;
        }
    }
    return false;
}

bool sw__home_release(struct sw__home *home, uint64_t slot)
{
    bool known = false;
    if (!slot || !sw__home_check(home)) {
        return false;
    }
    for (size_t i = 0; i < home->chunk_count; i++) {
        if (home->chunks[i].slot == slot) {
            home->event_bytes -= home->chunks[i].size;
            home->chunks[i] = home->chunks[--home->chunk_count];
            known = true;
            break;
        }
    }
    if (home->free_count == home->free_capacity) {
        size_t capacity = home->free_capacity ? home->free_capacity * 2 : 64;
        uint64_t *slots = sw__realloc(home->free_slots, capacity, sizeof(*slots));
        if (!slots) {
            return known;
        }
        home->free_slots = slots;
        home->free_capacity = capacity;
    }
    if (!sw__home_free_slot(home, slot, SW__FMT_CHUNK)) {
        home->free_slots[home->free_count++] = slot;
    }
    return known;
}

int sw__home_put_super(struct sw__home *home, const struct sw__fmt_super *from,
                       enum sw__fmt_state state, const char *hot_path)
{
    struct sw__fmt_super copy;
    if (!sw__home_check(home)) {
        return SW_EWRITE;
    }
    sw__copy_shared(&copy, from, sizeof(copy));
    copy.role = SW__ROLE_HOME;
    copy.home_end = state == SW__STATE_OPEN ? 0 : home->end;
    atomic_store_explicit(&copy.state, (uint32_t)state, memory_order_relaxed);
    memset(copy.hot_path, 0, sizeof(copy.hot_path));
    memset(copy.home_path, 0, sizeof(copy.home_path));
    snprintf(copy.hot_path, sizeof(copy.hot_path), "%s", hot_path ? hot_path : "");
    int result = sw__home_write(home, &copy, sizeof(copy), 0);
    home->started |= result == 0;
    return result ? sw__home_fail(home, result) : 0;
}

void sw__home_close(struct sw__home *home)
{
    /* Only what is still ours is closed: the number may belong to the program by now. */
    if (sw__os_is_file(home->fd, home->device, home->inode)) {
        close(home->fd);
    }
    sw__free(home->chunks);
    sw__free(home->free_slots);
    memset(home, 0, sizeof(*home));
    home->fd = -1;
}

void sw__copy_shared(void *to, const void *from, size_t length)
{
    uint64_t *out = to;
    const uint64_t *in = from;
    for (size_t i = 0; i < length / 8; i++) {
        out[i] = __atomic_load_n(&in[i], __ATOMIC_RELAXED);
    }
}

void sw__copy_to_shared(void *to, const void *from, size_t length)
{
    uint64_t *out = to;
    const uint64_t *in = from;
    for (size_t i = 0; i < length / 8; i++) {
        __atomic_store_n(&out[i], in[i], __ATOMIC_RELAXED);
    }
}
