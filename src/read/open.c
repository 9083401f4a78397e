/* Opening a trace: superblocks, the index of blocks, the clock, then what the blocks
 * hold. */
#include <unistd.h>

#include "read/later.h"

/* Memory for what is kept, in bytes a byte of the files, and besides. */
#define ARENA_FACTOR 16u
#define ARENA_BASE ((uint64_t)24 << 20)
#define ARENA_MOST ((uint64_t)8 << 30)

void sw_trace_free(sw_trace *trace)
{
    if (!trace) {
        return;
    }
    for (int i = 0; i < SW__SOURCES; i++) {
        sw__source_close(&trace->source[i]);
    }
    sw_timeline_free(trace->timeline);
    sw__free(trace->blocks);
    sw__arena_free(trace->rebuilt);
    sw__arena_free(trace->arena);
    sw__free(trace);
}

static sw_trace *create(void)
{
    sw_trace *trace = sw__alloc_zero(1, sizeof *trace);
    if (trace) {
        trace->source[SW__SOURCE_HOME].fd = -1;
        trace->source[SW__SOURCE_HOT].fd = -1;
    }
    return trace;
}

static uint64_t arena_limit(uint64_t bytes)
{
    uint64_t limit;
    if (__builtin_mul_overflow(bytes, ARENA_FACTOR, &limit) || limit > ARENA_MOST) {
        limit = ARENA_MOST;
    }
    return limit + ARENA_BASE + ((uint64_t)64 << 20);
}

static int load(sw_trace *trace, sw_error_info *info)
{
    /* The hot file first: a chunk that its writer moves meanwhile is then found in
     * the home file, and not missed in both. */
    int result = trace->has_hot ? sw__blocks_scan(trace, SW__SOURCE_HOT) : SW_OK;
    if (result == SW_OK) {
        sw__source_refresh(&trace->source[SW__SOURCE_HOME]);
        result = sw__blocks_scan(trace, SW__SOURCE_HOME);
    }
    if (result) {
        return result;
    }
    if (!trace->super && trace->block_count == 0) {
        return sw_error_set(info, SW_EFORMAT, "%s is not a stepwatch trace",
                            trace->source[SW__SOURCE_HOME].path);
    }
    sw__index_merge(trace);
    result = sw__later_load(trace);
    result = result ? result : sw__clock_build(trace, info);
    result = result ? result : sw__defs_load(trace);
    result = result ? result : sw__threads_load(trace);
    result = result ? result : sw__chunks_count(trace);
    result = result ? result : sw__lanes_load(trace);
    result = result ? result : sw__rows_load(trace);
    if (result == SW_OK) {
        sw__info_fill(trace);
        for (size_t i = 0; i < trace->lane_count; i++) {
            sw__lane_settle(trace, &trace->lanes[i]);
        }
    }
    return result;
}

/* `trace` has its home source. */
static int open_rest(sw_trace *trace, int hot_fd, bool follow, sw_error_info *info)
{
    struct sw__source *home = &trace->source[SW__SOURCE_HOME];
    int result = SW_OK;
    if (home->size == 0) {
        result = sw_error_set(info, SW_EFORMAT, "%s is empty", home->path);
    }
    if (result == SW_OK) {
        result = sw__super_load(home, info);
    }
    if (result == SW_OK) {
        trace->arena = sw__arena_create((size_t)arena_limit(home->size));
        result = trace->arena ? SW_OK : SW_ENOMEM;
    }
    if (result) {
        if (hot_fd >= 0) {
            close(hot_fd);
        }
        return result;
    }
    result = sw__super_find_hot(trace, hot_fd, follow, info);
    result = result ? result : load(trace, info);
    if (result == SW_OK) {
        for (int i = 0; i < SW__SOURCES; i++) {
            sw__source_settle(&trace->source[i]);
        }
    }
    return result;
}

static int finish(sw_trace **out, sw_trace *trace, int result, sw_error_info *info)
{
    if (result == SW_ENOMEM) {
        sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    if (result) {
        sw_trace_free(trace);
        trace = NULL;
    }
    *out = trace;
    return result;
}

int sw_trace_open(sw_trace **out, const char *path, sw_error_info *info)
{
    *out = NULL;
    sw_trace *trace = create();
    int result = trace ? SW_OK : SW_ENOMEM;
    if (result == SW_OK) {
        result = sw__source_open(&trace->source[SW__SOURCE_HOME], path, info);
    }
    if (result == SW_OK) {
        result = open_rest(trace, -1, true, info);
    }
    return finish(out, trace, result, info);
}

int sw__trace_open_fds(sw_trace **out, int home_fd, int hot_fd, bool follow,
                       const char *path, sw_error_info *info)
{
    *out = NULL;
    sw_trace *trace = create();
    if (!trace) {
        close(home_fd);
    }
    int result = trace ? SW_OK : SW_ENOMEM;
    if (result == SW_OK) {
        result = sw__source_adopt(&trace->source[SW__SOURCE_HOME], home_fd, path, info);
    }
    if (result == SW_OK) {
        result = open_rest(trace, hot_fd, follow, info);
    } else if (hot_fd >= 0) {
        close(hot_fd);
    }
    return finish(out, trace, result, info);
}
