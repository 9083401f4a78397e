/* Superblocks: recognising a trace, finding its hot file, and telling whether its
 * process lives. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "read/trace_internal.h"

static bool is_torn(const struct sw__fmt_super *a, const struct sw__fmt_super *b)
{
    return a->latest != b->latest ||
           memcmp(&a->latest_snapshot[a->latest & 1], &b->latest_snapshot[a->latest & 1],
                  sizeof a->latest_snapshot[0]) != 0;
}

int sw__super_load(struct sw__source *source, sw_error_info *info)
{
    struct sw__fmt_super *super = &source->super;
    struct sw__fmt_super again;
    size_t got;
    /* A running writer refreshes a snapshot now and then; two equal readings are
     * whole. */
    for (int attempt = 0;; attempt++) {
        memset(super, 0, sizeof *super);
        memset(&again, 0, sizeof again);
        got = sw__source_read(source, super, sizeof *super, 0);
        sw__source_read(source, &again, sizeof again, 0);
        if (attempt == 8 || !is_torn(super, &again)) {
            break;
        }
    }
    source->quality = SW__SUPER_NONE;
    if (got < sizeof super->magic ||
        memcmp(super->magic, SW__FMT_MAGIC, sizeof super->magic) != 0) {
        return SW_OK;
    }
    if (super->endian == __builtin_bswap32(SW__FMT_ENDIAN)) {
        return sw_error_set(info, SW_EFORMAT,
                            "%s was written on a machine of the other byte order",
                            source->path);
    }
    bool good = got == sizeof *super && super->endian == SW__FMT_ENDIAN;
    if (super->version > 1 && good) {
        return sw_error_set(info, SW_EVERSION,
                            "%s has format version %u; this stepwatch reads version 1",
                            source->path, (unsigned)super->version);
    }
    good = good && super->version == 1 && super->super_size == SW__FMT_PAGE &&
           (super->role == SW__ROLE_HOME || super->role == SW__ROLE_HOT);
    source->quality = good ? SW__SUPER_GOOD : SW__SUPER_DAMAGED;
    return SW_OK;
}

sw_clock_snapshot sw__super_latest(const struct sw__fmt_super *super)
{
    sw_clock_snapshot latest = super->latest_snapshot[super->latest & 1];
    sw_clock_snapshot end = super->end_snapshot;
    return end.ticks > latest.ticks ? end : latest;
}

/* The writer holds a lock on its hot file until it dies, whatever its pid is called
 * here. */
static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool is_alive(const struct sw__fmt_super *super, int hot_fd)
{
    if (is_locked(hot_fd)) {
        return true;
    }
    return super->pid != 0 && super->pid <= INT32_MAX && super->process_start != 0 &&
           sw__os_process_start((pid_t)super->pid) == super->process_start;
}

static uint64_t id_prefix(const struct sw__fmt_super *super)
{
    uint64_t prefix;
    memcpy(&prefix, super->file_id, sizeof prefix);
    return prefix;
}

/* The file id in the header of the first block, for home files that lost their
 * superblock. */
static bool first_block_id(const struct sw__source *source, uint64_t *id)
{
    struct sw__fmt_block header;
    if (sw__source_read(source, &header, sizeof header, SW__FMT_PAGE) != sizeof header ||
        header.magic != SW__FMT_BLOCK_MAGIC) {
        return false;
    }
    *id = header.file_id;
    return true;
}

/* A hot file counts only if it is this user's and says of itself that it belongs to
 * the home file: its path comes from a file, and the folder may be everyone's. */
static bool belongs(const struct sw__source *home, const struct sw__source *hot)
{
    if (hot->quality != SW__SUPER_GOOD || hot->super.role != SW__ROLE_HOT ||
        hot->uid != home->uid) {
        return false;
    }
    if (home->quality != SW__SUPER_NONE) {
        return memcmp(hot->super.file_id, home->super.file_id,
                      sizeof hot->super.file_id) == 0;
    }
    uint64_t id;
    return first_block_id(home, &id) && id == id_prefix(&hot->super);
}

static bool load_hot(sw_trace *trace, int fd, const char *path)
{
    struct sw__source *hot = &trace->source[SW__SOURCE_HOT];
    bool ok = sw__source_adopt(hot, fd, path, NULL) == SW_OK &&
              sw__super_load(hot, NULL) == SW_OK &&
              belongs(&trace->source[SW__SOURCE_HOME], hot);
    if (!ok) {
        sw__source_close(hot);
    }
    return ok;
}

/* The path of the hot file; NULL when there is none or it is nonsense. */
static const char *hot_path(const struct sw__fmt_super *super)
{
    size_t length = strnlen(super->hot_path, sizeof super->hot_path);
    return super->hot_path[0] == '/' && length < sizeof super->hot_path ? super->hot_path
                                                                        : NULL;
}

/* False when there should have been a hot file and it cannot be had. */
static bool look_for_hot(sw_trace *trace, int hot_fd, bool follow)
{
    if (hot_fd >= 0) {
        trace->has_hot = load_hot(trace, hot_fd, "the hot file");
        return trace->has_hot;
    }
    const struct sw__source *home = &trace->source[SW__SOURCE_HOME];
    const char *path = hot_path(&home->super);
    if (!path || !follow) {
        return home->quality == SW__SUPER_NONE;
    }
    int fd = sw__os_open_read(path);
    trace->has_hot = fd >= 0 && load_hot(trace, fd, path);
    return trace->has_hot;
}

static void tell_missing(sw_trace *trace)
{
    const char *path = hot_path(&trace->source[SW__SOURCE_HOME].super);
    trace->info.hot_missing = true;
    if (trace->alive) {
        sw__trace_say(trace,
                      "The process runs, but its newest events are not accessible.");
    } else if (path) {
        sw__trace_say(trace,
                      "The process was killed and its hot file %.200s is gone: the last "
                      "events are lost.",
                      path);
    } else {
        sw__trace_say(trace,
                      "The process was killed and had no hot file: the last events "
                      "are lost.");
    }
}

/* The superblock that counts, and the id that blocks must carry. */
static void choose_super(sw_trace *trace)
{
    const struct sw__source *home = &trace->source[SW__SOURCE_HOME];
    if (trace->has_hot) {
        trace->super = &trace->source[SW__SOURCE_HOT].super;
    } else if (home->quality != SW__SUPER_NONE) {
        trace->super = &home->super;
    }
    if (trace->super) {
        trace->file_id_known = true;
        trace->file_id = id_prefix(trace->super);
    }
    if (home->quality != SW__SUPER_GOOD) {
        sw__trace_damage(trace, "The first page of %s is damaged%s.", home->path,
                         trace->has_hot ? "; that of its hot file is used" : "");
    }
}

int sw__super_find_hot(sw_trace *trace, int hot_fd, bool follow, sw_error_info *info)
{
    struct sw__source *home = &trace->source[SW__SOURCE_HOME];
    const struct sw__fmt_super *super = &home->super;
    bool readable = home->quality != SW__SUPER_NONE;
    bool found = true;
    if (!readable || (super->state == SW__STATE_OPEN && super->role != SW__ROLE_HOT)) {
        found = look_for_hot(trace, hot_fd, follow);
    } else if (hot_fd >= 0) {
        close(hot_fd);
    }
    if (!found && readable) {
        /* It may have gone because the process closed the file a moment ago. */
        int result = sw__super_load(home, info);
        if (result) {
            return result;
        }
    }
    trace->info.hot_used = trace->has_hot;
    choose_super(trace);
    if (trace->super && trace->super->state == SW__STATE_OPEN) {
        trace->alive = is_alive(trace->super, trace->source[SW__SOURCE_HOT].fd);
        if (!found) {
            tell_missing(trace);
        }
    }
    return SW_OK;
}
