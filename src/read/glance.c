/* A light look at the steps of a process that records at this moment: two or three small reads, however much it has
 * recorded.
 *
 * State blocks of a hot file stay where they are and what they are, and new ones come behind the others. So the chain of
 * headers is walked only as far as it has grown since the last look, and what is read anew are the lanes. Their fields
 * change meanwhile; a mixture of two moments, one step apart, does no harm here. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "read/later.h"

#define LANES_MOST 64
#define WALK_MOST 4096 /* headers in one look; a file of the usual cap has no more */

struct sw_glance {
    struct sw__source hot;
    uint64_t file_id;
    uint64_t walked; /* everything before this offset is known */
    uint64_t lane[LANES_MOST];
    size_t lane_count;
};

/* Opens the hot file that `home` names, if it is this user's and belongs to it. */
static int open_hot(sw_glance *glance, const struct sw__source *home, const char *path)
{
    int fd = sw__os_open_read(path);
    if (fd < 0) {
        return SW_ENOTFOUND;
    }
    int result = sw__source_adopt(&glance->hot, fd, path, NULL);
    result = result ? result : sw__super_load(&glance->hot, NULL);
    const struct sw__fmt_super *super = &glance->hot.super;
    if (result == SW_OK &&
        (glance->hot.quality != SW__SUPER_GOOD || super->role != SW__ROLE_HOT ||
         glance->hot.uid != home->uid ||
         memcmp(super->file_id, home->super.file_id, sizeof super->file_id) != 0)) {
        result = SW_EFORMAT;
    }
    memcpy(&glance->file_id, super->file_id, sizeof glance->file_id);
    return result;
}

int sw_glance_open(sw_glance **out, const char *path)
{
    struct sw__source home = {.fd = -1};
    *out = NULL;
    sw_glance *glance = sw__alloc_zero(1, sizeof *glance);
    if (!glance) {
        return SW_ENOMEM;
    }
    glance->hot.fd = -1;
    glance->walked = SW__FMT_PAGE;
    int result = sw__source_open(&home, path, NULL);
    result = result ? result : sw__super_load(&home, NULL);
    if (result == SW_OK && home.quality != SW__SUPER_GOOD) {
        result = SW_EFORMAT;
    }
    const struct sw__fmt_super *super = &home.super;
    if (result == SW_OK) {
        bool there = super->state == SW__STATE_OPEN && super->hot_path[0] == '/' &&
                     memchr(super->hot_path, 0, sizeof super->hot_path);
        result = there ? open_hot(glance, &home, super->hot_path) : SW_ENOTFOUND;
    }
    sw__source_close(&home);
    if (result) {
        sw_glance_free(glance);
        return result;
    }
    *out = glance;
    return SW_OK;
}

void sw_glance_free(sw_glance *glance)
{
    if (glance) {
        sw__source_close(&glance->hot);
        sw__free(glance);
    }
}

static void walk(sw_glance *glance)
{
    struct sw__fmt_block header;
    for (int i = 0; i < WALK_MOST; i++) {
        if (sw__source_read(&glance->hot, &header, sizeof header, glance->walked) !=
                sizeof header ||
            header.magic != SW__FMT_BLOCK_MAGIC || header.address != glance->walked ||
            header.size < SW__FMT_PAGE || header.size % SW__FMT_PAGE != 0 ||
            header.size > SW__READ_BLOCK_MAX) {
            return; /* the end, for now */
        }
        if (header.kind == SW__BLOCK_LANE && header.file_id == glance->file_id &&
            glance->lane_count < LANES_MOST) {
            glance->lane[glance->lane_count++] = glance->walked;
        }
        glance->walked += header.size;
    }
}

/* Adds what was noted since. In a hot file addresses are offsets. */
static void add_later(const sw_glance *glance, struct sw__fmt_lane *lane)
{
    struct {
        struct sw__fmt_later head;
        struct sw__fmt_note notes[SW__LATER_MOST];
    } got;
    struct sw__later later;
    const size_t length = sw__source_read(&glance->hot, &got, sizeof got, lane->later);
    if (length < sizeof got.head) {
        return;
    }
    const size_t held = (length - sizeof got.head) / sizeof got.notes[0];
    uint32_t count = got.head.count < got.head.room ? got.head.count : got.head.room;
    count = count < held ? count : (uint32_t)held;
    if (sw__later_parse(lane, &got.head, got.notes, count, &later) == SW_OK) {
        sw__later_add(&later, lane);
    }
}

int sw_glance_read(sw_glance *glance, sw_glance_steps *out)
{
    struct {
        struct sw__fmt_block block;
        struct sw__fmt_lane lane;
    } got;
    struct stat status;
    *out = (sw_glance_steps){.pid = glance->hot.super.pid};
    /* A file that was closed or folded has left its folder. */
    out->ended = fstat(glance->hot.fd, &status) != 0 || status.st_nlink == 0;
    walk(glance);
    for (size_t i = 0; i < glance->lane_count; i++) {
        if (sw__source_read(&glance->hot, &got, sizeof got, glance->lane[i]) !=
                sizeof got ||
            got.block.kind != SW__BLOCK_LANE) {
            continue;
        }
        if (got.lane.later) {
            add_later(glance, &got.lane);
        }
        const uint64_t open = got.lane.step_open;
        const uint64_t steps = got.lane.steps;
        if (steps > out->steps || (open && out->steps == 0)) {
            out->steps = steps;
            out->open = open != 0;
            out->thread = got.lane.thread;
            out->step_ticks = got.lane.step_ticks;
            memcpy(out->phase_ticks, got.lane.phase_ticks, sizeof out->phase_ticks);
        }
    }
    return out->steps || out->open ? SW_OK : SW_ENOTFOUND;
}
