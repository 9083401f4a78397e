/* Tables as Arrow: the C data interface and the C stream interface, whose structures are a public specification. Pure C: a
 * stream holds a reference to its source and to nothing of Python's, so any thread may read and release it. */
#ifndef STEPWATCH_EXT_ARROW_H
#define STEPWATCH_EXT_ARROW_H

#include "table.h"

#define ARROW_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* The columns of a table as the schema of a struct. 0 or SW_ENOMEM. */
int core_arrow_schema(struct ArrowSchema *out, const core_table_kind *kind);
/* A stream of the table's rows in batches of at most 65,536. */
int core_arrow_stream(struct ArrowArrayStream *out, core_source *source,
                      enum core_table_number number, sw_error_info *info);

#endif
