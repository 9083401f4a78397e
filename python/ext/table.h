/* Tables of a run: what their columns are and how a row is made, for Python's dicts and for Arrow alike.
 *
 * A new table is a number in enum core_table_number, an array of columns, a function that fills one row, and an entry in
 * `core_tables` (tables.c) and among the attributes of Run (run.c). */
#ifndef STEPWATCH_EXT_TABLE_H
#define STEPWATCH_EXT_TABLE_H

#include "source.h"

enum core_column_type {
    CORE_INTEGER, /* int64 */
    CORE_REAL,    /* float64 */
    CORE_TRUTH,   /* bool */
    CORE_NAME,    /* text that lives as long as the source: few different ones */
    CORE_TEXT,    /* text that lives until the reader's next batch */
    CORE_TEXTS    /* a list of texts */
};

typedef struct core_column {
    const char *name;
    enum core_column_type type;
    bool nullable; /* a row may not know it */
} core_column;

/* Bytes as the program wrote them: any, not only UTF-8. */
typedef struct core_bytes {
    const char *data;
    size_t length;
} core_bytes;

/* One value. Not known is not the same as 0. */
typedef struct core_cell {
    bool known;
    union {
        int64_t integer;
        double real;
        bool truth;
        core_bytes text;
        struct {
            const core_bytes *items;
            size_t count;
        } texts;
    } as;
} core_cell;

typedef struct core_reader core_reader;

/* How the rows of a table are made. Either from events (`events` is not 0), which come in order of their end, or by
 * index. Both forms fill all cells of `row`, in the order of the columns. */
typedef struct core_table_kind {
    const char *name;
    const core_column *columns;
    size_t column_count;
    uint32_t events; /* bit k: records of kind k */
    void (*from_event)(core_reader *reader, const sw_event *event, core_cell *row);
    uint64_t (*count)(const core_source *source);
    /* 0, or SW_ENOMEM. */
    int (*at)(core_reader *reader, uint64_t index, core_cell *row);
    /* Both may be NULL: makes source->made[] before the first row or count, and frees it with the source. */
    int (*prepare)(core_source *source, void **made, sw_error_info *info);
    void (*discard)(void *made);
} core_table_kind;

extern const core_table_kind *const core_tables[CORE_TABLES];

/* The kinds of table that stand in files of their own. */
extern const core_table_kind core_table_sections;
extern const core_table_kind core_table_steps;
extern const core_table_kind core_table_counters;
extern const core_table_kind core_table_marks;
extern const core_table_kind core_table_spans;
extern const core_table_kind core_table_samples;
extern const core_table_kind core_table_threads;
extern const core_table_kind core_table_functions;
extern const core_table_kind core_table_lines;
extern const core_table_kind core_table_stacks;
extern const core_table_kind core_table_modules;
extern const core_table_kind core_table_loaders;
extern const core_table_kind core_table_stages;
extern const core_table_kind core_table_batches;
extern const core_table_kind core_table_compilations;
extern const core_table_kind core_table_waits;
extern const core_table_kind core_table_sites;
extern const core_table_kind core_table_settings;
extern const core_table_kind core_table_operators;
extern const core_table_kind core_table_files;
extern const core_table_kind core_table_epochs;
extern const core_table_kind core_table_monitor;
extern const core_table_kind core_table_monitor_values;
extern const core_table_kind core_table_memory;
extern const core_table_kind core_table_allocations;

/* --- Readers ---------------------------------------------------------------------- */

#define CORE_LANE_CACHE 64
#define CORE_DOMAINS 64

/* A walk over a table from its first row on. It takes the source's lock for itself; one thread at a time may use it. */
struct core_reader {
    core_source *source; /* a reference */
    const core_table_kind *kind;
    enum core_table_number number;
    sw_cursor *cursor;
    uint64_t index;
    uint64_t passed;           /* rows given out or passed over */
    struct core_block *blocks; /* memory of the rows of the last batch */
    struct core_lane_entry {
        const sw_trace_lane *lane;
        uint32_t trace;
    } lanes[CORE_LANE_CACHE];
    uint32_t
        *phases; /* by trace and domain: bit p, phase p is measured; bit 31: looked */
};

int core_reader_open(core_reader **out, core_source *source,
                     enum core_table_number number, sw_error_info *info);
void core_reader_free(core_reader *reader); /* NULL is fine */
/* Fills up to `most` rows of column_count cells each. `*rows` is 0 at the end. */
int core_reader_fill(core_reader *reader, core_cell *cells, size_t most, size_t *rows,
                     sw_error_info *info);
/* Passes over up to `most` rows; `*rows` is how many there were. */
int core_reader_skip(core_reader *reader, uint64_t most, uint64_t *rows,
                     sw_error_info *info);

/* For row functions. Memory until the next batch; NULL when there is none. */
void *core_reader_take(core_reader *reader, size_t bytes);
sw_trace *core_reader_trace(const core_reader *reader, const sw_event *event);
/* A name of the trace by its id, and the section of a call-tree node; not known: {NULL, 0}. */
core_bytes core_name_of(const sw_trace *trace, uint32_t id);
core_bytes core_section_of(core_reader *reader, const sw_event *event, uint32_t thread,
                           uint32_t domain, uint32_t node);
core_bytes core_parent_of(core_reader *reader, const sw_event *event, uint32_t thread,
                          uint32_t domain, uint32_t node);
const char *core_thread_of(const sw_trace *trace, uint32_t thread);

/* --- Cells ------------------------------------------------------------------------ */

/* A number that every row has. Nothing real comes near 2^63. */
static inline void core_put_count(core_cell *cell, uint64_t value)
{
    cell->known = true;
    cell->as.integer = value <= INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* A number that may be SW_UNKNOWN, for nullable columns. */
static inline void core_put_integer(core_cell *cell, uint64_t value)
{
    cell->known = value <= INT64_MAX;
    cell->as.integer = cell->known ? (int64_t)value : 0;
}

static inline void core_put_unknown(core_cell *cell)
{
    cell->known = false;
    cell->as.integer = 0;
}

static inline void core_put_real(core_cell *cell, double value)
{
    cell->known = true;
    cell->as.real = value;
}

static inline void core_put_truth(core_cell *cell, bool value)
{
    cell->known = true;
    cell->as.truth = value;
}

static inline void core_put_bytes(core_cell *cell, core_bytes bytes)
{
    cell->known = bytes.data != NULL;
    cell->as.text = bytes;
}

/* A C string; NULL is not known. */
void core_put_text(core_cell *cell, const char *text);

#endif
