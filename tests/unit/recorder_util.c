#include "recorder_util.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char ru_folder[64];

static int remove_entry(const char *path, const struct stat *facts, int kind,
                        struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

int ru_setup(void **state)
{
    (void)state;
    extern char **environ;
    /* What the caller's shell has set must not steer the tests; the clock is theirs to choose. */
    for (char **entry = environ; *entry;) {
        if (strncmp(*entry, "STEPWATCH_", 10) == 0 &&
            strncmp(*entry, "STEPWATCH_CLOCK=", 16) != 0) {
            char name[128];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
            unsetenv(name);
            entry = environ;
        } else {
            entry++;
        }
    }
    snprintf(ru_folder, sizeof ru_folder, "/tmp/stepwatch-test-XXXXXX");
    return mkdtemp(ru_folder) ? 0 : -1;
}

int ru_teardown(void **state)
{
    (void)state;
    sw_shutdown(); /* A test that failed may have left a recording behind. */
    return nftw(ru_folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *ru_path(const char *name)
{
    static char paths[4][256];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", ru_folder, name);
    return path;
}

void ru_start(sw_config config)
{
    sw_error_info info = {0};
    config.out = config.out ? config.out : ru_path("run");
    config.quiet = config.quiet ? config.quiet : SW_ON;
    int result = sw_init_info(&config, sizeof config, &info);
    if (result) {
        fail_msg("recording did not start: %s", info.message);
    }
    assert_true(sw_is_recording());
}

static uint8_t *read_bytes(const char *path, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    assert_true(fd >= 0 && fstat(fd, &facts) == 0);
    /* Aligned as the file's own pages are, so that its structures can be read in place. */
    void *bytes = aligned_alloc(4096, ((size_t)facts.st_size + 4095) / 4096 * 4096);
    assert_non_null(bytes);
    *size = 0;
    for (ssize_t got;
         (got = read(fd, (uint8_t *)bytes + *size, (size_t)facts.st_size - *size)) > 0;) {
        *size += (size_t)got;
    }
    close(fd);
    assert_int_equal(*size, facts.st_size);
    return bytes;
}

static int compare_blocks(const void *left, const void *right)
{
    const struct sw__fmt_block *a = *(const struct sw__fmt_block *const *)left;
    const struct sw__fmt_block *b = *(const struct sw__fmt_block *const *)right;
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->address < b->address ? -1 : a->address > b->address;
}

static void index_blocks(struct ru_trace *trace)
{
    size_t room = trace->size / SW__FMT_PAGE;
    trace->blocks = calloc(room + 1, sizeof *trace->blocks);
    assert_non_null(trace->blocks);
    for (uint64_t offset = SW__FMT_PAGE;
         offset + sizeof(struct sw__fmt_block) <= trace->size;) {
        const struct sw__fmt_block *block =
            (const struct sw__fmt_block *)(void *)(trace->bytes + offset);
        bool sound = block->magic == SW__FMT_BLOCK_MAGIC;
        if (sound) {
            assert_true(block->size >= SW__FMT_PAGE && block->size % SW__FMT_PAGE == 0);
            trace->blocks[trace->block_count++] = block;
        }
        offset += sound ? block->size : SW__FMT_PAGE;
    }
    qsort(trace->blocks, trace->block_count, sizeof *trace->blocks, compare_blocks);
}

/* The next block of a kind from `*index` on, NULL at their end. */
static const struct sw__fmt_block *next_block(const struct ru_trace *trace, unsigned kind,
                                              size_t *index)
{
    while (*index < trace->block_count && trace->blocks[*index]->kind < kind) {
        ++*index;
    }
    return *index < trace->block_count && trace->blocks[*index]->kind == kind
               ? trace->blocks[(*index)++]
               : NULL;
}

/* Bytes at an address of the hot file in a block of that kind; NULL where there is none. */
static const void *at_address(const struct ru_trace *trace, unsigned kind,
                              uint64_t address)
{
    size_t low = 0;
    size_t high = trace->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sw__fmt_block *block = trace->blocks[middle];
        if (block->kind < kind || (block->kind == kind && block->address <= address)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct sw__fmt_block *block = low ? trace->blocks[low - 1] : NULL;
    return block && block->kind == kind &&
                   address - block->address < sizeof *block + atomic_load(&block->used)
               ? (const uint8_t *)block + (address - block->address)
               : NULL;
}

static struct ru_trace open_file(const char *path)
{
    struct ru_trace trace = {0};
    sw_error_info info = {0};
    if (sw_trace_open(&trace.trace, path, &info)) {
        fail_msg("%s", info.message);
    }
    trace.info = sw_trace_get_info(trace.trace);
    trace.bytes = read_bytes(path, &trace.size);
    trace.super = (const struct sw__fmt_super *)(void *)trace.bytes;
    index_blocks(&trace);
    assert_int_equal(trace.info->end, SW_TRACE_CLOSED);
    assert_false(trace.info->damaged);
    ru_check(&trace);
    return trace;
}

struct ru_trace ru_finish(void)
{
    char path[1100];
    assert_true(sw_trace_path(path, sizeof path) < sizeof path && path[0]);
    sw_shutdown();
    assert_false(sw_is_recording());
    return open_file(path);
}

struct ru_trace ru_open_run(const char *folder)
{
    char path[1100] = "";
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        if (entry->d_name[0] != '.') {
            assert_string_equal(path, "");
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        }
    }
    closedir(list);
    return open_file(path);
}

void ru_free(struct ru_trace *trace)
{
    sw_trace_free(trace->trace);
    free(trace->bytes);
    free(trace->blocks);
    memset(trace, 0, sizeof *trace);
}

void ru_must_that(bool holds, const char *text, const char *file, int line)
{
    if (!holds) {
        fprintf(stderr, "%s:%d: %s does not hold\n", file, line, text);
        fflush(stderr);
        _exit(99);
    }
}

void ru_child(void (*body)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* A child that hangs goes when its test is given up. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        body(arg);
        sw_shutdown();
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the child ended with status 0x%x", (unsigned)status);
    }
}

size_t ru_lane_index(const struct ru_trace *trace, uint32_t thread, uint32_t domain)
{
    for (size_t i = 0; i < sw_trace_lane_count(trace->trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace->trace, i);
        if (lane->thread == thread && lane->domain == domain) {
            return i;
        }
    }
    fail_msg("there is no lane of thread %u in domain %u", thread, domain);
    return 0;
}

const sw_trace_lane *ru_lane(const struct ru_trace *trace, uint32_t thread,
                             uint32_t domain)
{
    return sw_trace_get_lane(trace->trace, ru_lane_index(trace, thread, domain));
}

const char *ru_name(const struct ru_trace *trace, uint32_t id)
{
    const sw_trace_name *name = sw_trace_get_name(trace->trace, id);
    return name ? name->text : "";
}

const sw_trace_node *ru_find(const struct ru_trace *trace, const sw_trace_lane *lane,
                             const char *path)
{
    uint32_t at = 0;
    while (*path) {
        size_t length = strcspn(path, "/");
        uint32_t found = 0;
        for (uint32_t i = 1; i < lane->node_count && !found; i++) {
            const sw_trace_name *name =
                sw_trace_get_name(trace->trace, lane->nodes[i].section);
            if (lane->nodes[i].parent == at && name && name->length == length &&
                memcmp(name->text, path, length) == 0) {
                found = i;
            }
        }
        if (!found) {
            return NULL;
        }
        at = found;
        path += length + (path[length] == '/');
    }
    return &lane->nodes[at];
}

const sw_trace_node *ru_node(const struct ru_trace *trace, const char *path)
{
    const sw_trace_node *node = ru_find(trace, ru_lane(trace, 0, 0), path);
    if (!node) {
        fail_msg("there is no node %s", path);
    }
    return node;
}

uint64_t ru_calls(const struct ru_trace *trace, const char *path)
{
    const sw_trace_node *node = ru_find(trace, ru_lane(trace, 0, 0), path);
    return node ? node->calls : 0;
}

uint64_t ru_all_calls(const struct ru_trace *trace)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace->trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace->trace, i);
        for (size_t j = 0; j < lane->node_count; j++) {
            calls += lane->nodes[j].kind == 0 ? lane->nodes[j].calls : 0;
        }
    }
    return calls;
}

const struct sw__fmt_node *ru_raw_node(const struct ru_trace *trace, uint32_t thread,
                                       uint32_t domain, uint32_t index)
{
    size_t at = 0;
    for (const struct sw__fmt_block *block;
         (block = next_block(trace, SW__BLOCK_NODES, &at)) != NULL;) {
        if (block->thread != thread || block->domain != domain) {
            continue;
        }
        const struct sw__fmt_node *nodes =
            (const struct sw__fmt_node *)(const void *)(block + 1);
        uint32_t count = atomic_load(&block->used) / (uint32_t)sizeof *nodes;
        /* Dense, so the first of a block tells where the others are. */
        if (count && nodes[0].index <= index && index - nodes[0].index < count) {
            assert_int_equal(nodes[index - nodes[0].index].index, index);
            return &nodes[index - nodes[0].index];
        }
    }
    fail_msg("node %u of thread %u is not in the file", index, thread);
    return NULL;
}

const struct sw__fmt_lane *ru_raw_lane(const struct ru_trace *trace, uint32_t thread,
                                       uint32_t domain)
{
    size_t at = 0;
    for (const struct sw__fmt_block *block;
         (block = next_block(trace, SW__BLOCK_LANE, &at)) != NULL;) {
        const struct sw__fmt_lane *lane =
            (const struct sw__fmt_lane *)(const void *)(block + 1);
        if (lane->thread == thread && lane->domain == domain) {
            return lane;
        }
    }
    fail_msg("the lane of thread %u in domain %u is not in the file", thread, domain);
    return NULL;
}

const struct sw__fmt_node *ru_ticks(const struct ru_trace *trace, const char *path)
{
    const sw_trace_lane *lane = ru_lane(trace, 0, 0);
    return ru_raw_node(trace, 0, 0, (uint32_t)(ru_node(trace, path) - lane->nodes));
}

uint64_t ru_raw_histogram(const struct ru_trace *trace, const uint32_t *pages)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < 60; i++) {
        const struct sw__fmt_page *page =
            pages[i] ? at_address(trace, SW__BLOCK_HIST, (uint64_t)pages[i] * 64) : NULL;
        for (unsigned j = 0; page && j < SW_HISTOGRAM_SUB; j++) {
            sum += page->bucket[j];
        }
    }
    return sum;
}

struct ru_records ru_read(const struct ru_trace *trace, uint32_t kinds)
{
    struct ru_records records = {0};
    size_t room = 0;
    sw_cursor *cursor;
    sw_cursor_filter filter = {.kinds = kinds};
    sw_error_info info = {0};
    if (sw_cursor_open(&cursor, &trace->trace, 1, &filter, &info)) {
        fail_msg("%s", info.message);
    }
    sw_event event;
    int result;
    while ((result = sw_cursor_next(cursor, &event)) == 0) {
        if (records.count == room) {
            room = room ? room * 2 : 1024;
            records.at = realloc(records.at, room * sizeof *records.at);
            assert_non_null(records.at);
        }
        size_t size = (size_t)event.record->units * SW_RECORD_UNIT;
        struct ru_record *record = &records.at[records.count++];
        record->thread = event.thread;
        record->begin_ns = event.begin_ns;
        record->end_ns = event.end_ns;
        record->record = malloc(size);
        assert_non_null(record->record);
        memcpy(record->record, event.record, size);
    }
    assert_int_equal(result, SW_EEND);
    sw_cursor_free(cursor);
    return records;
}

void ru_records_free(struct ru_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        free(records->at[i].record);
    }
    free(records->at);
    memset(records, 0, sizeof *records);
}

size_t ru_count(const struct ru_trace *trace, uint32_t kinds)
{
    size_t count = 0;
    sw_cursor *cursor;
    sw_cursor_filter filter = {.kinds = kinds};
    assert_int_equal(sw_cursor_open(&cursor, &trace->trace, 1, &filter, NULL), 0);
    for (sw_event event; sw_cursor_next(cursor, &event) == 0;) {
        count++;
    }
    sw_cursor_free(cursor);
    return count;
}

/* Sums of a lane's step records. */
struct step_sums {
    uint64_t steps, incomplete, ticks, least, most;
    uint64_t phases[SW_PHASE_SLOTS];
};

static void check_steps(const struct ru_trace *trace)
{
    struct ru_records steps = ru_read(trace, 1u << SW_RECORD_STEP);
    for (size_t i = 0; i < sw_trace_lane_count(trace->trace); i++) {
        const sw_trace_lane *shown = sw_trace_get_lane(trace->trace, i);
        const struct sw__fmt_lane *lane =
            ru_raw_lane(trace, shown->thread, shown->domain);
        struct step_sums sums = {.least = UINT64_MAX};
        for (size_t j = 0; j < steps.count; j++) {
            const sw_record_step *step = &steps.at[j].record->step;
            if (steps.at[j].thread != shown->thread || step->domain != shown->domain ||
                !(step->head.flags & SW_RECORD_INTERVAL)) {
                continue;
            }
            uint64_t whole = step->end - step->head.ticks;
            uint64_t parts = 0;
            bool complete = !(step->head.flags & SW_STEP_INCOMPLETE);
            assert_true(step->end >= step->head.ticks);
            for (unsigned k = 0; k < SW_PHASE_SLOTS; k++) {
                parts += step->phase_ticks[k];
                sums.phases[k] += complete ? step->phase_ticks[k] : 0;
            }
            assert_int_equal(parts, whole);
            sums.steps++;
            sums.incomplete += !complete;
            sums.ticks += complete ? whole : 0;
            sums.least = complete && whole < sums.least ? whole : sums.least;
            sums.most = complete && whole > sums.most ? whole : sums.most;
        }
        assert_int_equal(ru_raw_histogram(trace, lane->step_hist),
                         atomic_load(&lane->steps) -
                             atomic_load(&lane->steps_incomplete));
        if (trace->info->steps_dropped) {
            continue; /* The records are not all there; the lane's own sums are. */
        }
        assert_int_equal(atomic_load(&lane->steps), sums.steps);
        assert_int_equal(atomic_load(&lane->steps_incomplete), sums.incomplete);
        assert_int_equal(lane->step_ticks, sums.ticks);
        assert_int_equal(lane->step_min, sums.least);
        assert_int_equal(lane->step_max, sums.most);
        for (unsigned k = 0; k < SW_PHASE_SLOTS; k++) {
            assert_int_equal(lane->phase_ticks[k], sums.phases[k]);
        }
    }
    ru_records_free(&steps);
}

/* Whether some call ran in stretches, as far as records tell. */
static bool has_stretches(const struct ru_trace *trace)
{
    bool found = false;
    struct ru_records spans = ru_read(trace, 1u << SW_RECORD_SPAN);
    for (size_t i = 0; i < spans.count; i++) {
        found = found || spans.at[i].record->head.flags & SW_RECORD_PART;
    }
    ru_records_free(&spans);
    return found;
}

static void check_nodes(const struct ru_trace *trace, size_t index, bool stretches)
{
    const sw_trace_lane *lane = sw_trace_get_lane(trace->trace, index);
    uint64_t *below = calloc(lane->node_count, sizeof *below);
    bool *plain = calloc(lane->node_count, sizeof *plain);
    sw_histogram *histogram = sw_histogram_create();
    assert_true(below && plain && histogram);
    for (size_t i = 0; i < lane->node_count; i++) {
        plain[i] = true;
    }
    for (uint32_t i = 0; i < lane->node_count; i++) {
        const sw_trace_node *shown = &lane->nodes[i];
        const struct sw__fmt_node *node =
            ru_raw_node(trace, lane->thread, lane->domain, i);
        assert_int_equal(shown->section, node->section);
        assert_int_equal(shown->parent, node->parent);
        assert_int_equal(shown->calls, node->calls);
        assert_true(i == 0 || node->parent < i);
        if (i == 0 || node->kind != 0) {
            continue;
        }
        if (trace->info->hist_missed == 0) {
            assert_int_equal(ru_raw_histogram(trace, node->hist), node->calls);
        }
        below[node->parent] += node->inclusive;
        /* Calls that do not nest, and nodes that stand for several levels, are nobody's child. */
        if (node->unnested || shown->open || node->flags & SW__NODE_FAMILY) {
            plain[node->parent] = false;
            plain[i] = false;
        }
        if (node->calls == 0) {
            continue;
        }
        assert_true(node->minimum <= node->last && node->last <= node->maximum);
        if (!stretches) { /* whose durations may lie at several nodes */
            assert_true(node->inclusive >= node->maximum);
            assert_true(node->inclusive / node->calls >= node->minimum);
            assert_true(node->inclusive / node->calls <= node->maximum);
        }
        assert_true(node->errors <= node->calls && node->unnested <= node->calls);
        if (trace->info->hist_missed == 0 && lane->node_count < 200) {
            assert_int_equal(sw_trace_node_histogram(trace->trace, index, i, histogram),
                             0);
        }
    }
    for (uint32_t i = 1; i < lane->node_count; i++) {
        const struct sw__fmt_node *node =
            ru_raw_node(trace, lane->thread, lane->domain, i);
        if (plain[i] && node->kind == 0 && trace->info->nodes_folded == 0) {
            assert_int_equal(node->child, below[i]);
            assert_true(node->inclusive >= node->child);
        }
    }
    sw_histogram_free(histogram);
    free(plain);
    free(below);
}

/* Records in the chunks of events, known and unknown kinds alike. */
static uint64_t raw_events(const struct ru_trace *trace)
{
    uint64_t count = 0;
    size_t index = 0;
    for (const struct sw__fmt_block *block;
         (block = next_block(trace, SW__BLOCK_EVENTS, &index)) != NULL;) {
        const uint8_t *payload = (const uint8_t *)(block + 1);
        uint32_t used = atomic_load(&block->used);
        uint32_t records = 0;
        for (uint32_t at = 0; at < used; at += payload[at + 1] * SW_RECORD_UNIT) {
            assert_true(payload[at + 1] > 0);
            records++;
        }
        if (block->flags & SW__BLOCK_SEALED) {
            assert_int_equal(block->records, records);
        }
        count += records;
    }
    return count;
}

void ru_check(const struct ru_trace *trace)
{
    const sw_trace_info *info = trace->info;
    uint64_t records = 0, dropped = 0, overwritten = 0;
    for (size_t i = 0; i < sw_trace_thread_count(trace->trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace->trace, i);
        records += thread->records;
        dropped += thread->dropped;
        overwritten += thread->overwritten;
    }
    assert_true(info->dropped >= dropped);
    assert_true(info->overwritten >= overwritten);
    assert_int_equal(raw_events(trace), info->present);
    check_steps(trace);
    const bool stretches = has_stretches(trace);
    for (size_t i = 0; i < sw_trace_lane_count(trace->trace); i++) {
        check_nodes(trace, i, stretches);
    }
}

uint64_t ru_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void ru_spin(uint64_t ticks)
{
    for (uint64_t until = sw_now() + ticks; sw_now() < until;) {
    }
}

uint64_t ru_file_size(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return (uint64_t)facts.st_size;
}
