/* The tables of training while they are being joined. Names are those of the traces, which outlive the result. */
#ifndef SW_ANALYZE_TRAINING_H
#define SW_ANALYZE_TRAINING_H

#include <stepwatch/training.h>

#include "base/intern.h"
#include "base/memory.h"

/* Things by their key: an array in the order of arrival, in which equal keys meet. */
struct sw__bag {
    sw__intern *keys;
    unsigned char *items;
    size_t size, count, room;
};

/* A key from texts and numbers. */
struct sw__bag_key {
    char *bytes;
    size_t used, room;
    bool failed;
};

struct sw_training {
    sw__arena *arena;
    bool recorded;
    struct sw__bag_key key; /* scratch */

    struct sw__bag sites;   /* sw_training_site; complete before the others begin */
    struct sw__bag modules; /* sw_training_module */
    struct sw__bag dtypes;  /* sw_training_dtype */
    struct sw__bag loaders; /* struct sw__loader */
    struct sw__bag stages;  /* struct sw__stage */
    struct sw__bag waited;  /* struct sw__waited */
    struct sw__bag compiled, functions; /* struct sw__compiled; uint64_t of ns */
    struct sw__bag waits;               /* sw_training_wait */
    struct sw__bag settings;            /* sw_training_setting */
    struct sw__bag operators;           /* sw_training_operator */

    /* What is handed out, in the arena or a bag. */
    sw_training_loader *loader_list;
    sw_training_stage *stage_list;
    sw_training_compilation *compilation_list;
};

/* A loader while its rows come in. */
struct sw__loader {
    sw_training_loader loader;
    size_t trace; /* whose settings these are */
};

struct sw__stage {
    sw_training_stage stage;
    uint32_t loader; /* its place in `loaders` */
};

/* How often the process of a trace waited for a loader. */
struct sw__waited {
    size_t trace;
    uint32_t loader;
    uint64_t calls, ns;
};

struct sw__compiled {
    sw_training_compilation compilation;
    uint32_t function; /* its place in `functions` */
};

/* One trace with its number in the run. */
struct sw__training_source {
    sw_training *training;
    const sw_trace *trace;
    size_t index;
    double ns_per_tick;
};

int sw__training_of_traces(sw_training **out, const sw_trace *const *traces,
                           size_t count);

/* Each takes what its tables say of one trace. 0 or SW_ENOMEM. */
int sw__training_sites(const struct sw__training_source *source);
int sw__training_modules(const struct sw__training_source *source);
int sw__training_loaders(const struct sw__training_source *source);
int sw__training_places(const struct sw__training_source *source);
/* When all traces are in. */
int sw__training_finish_modules(sw_training *training);
int sw__training_finish_loaders(sw_training *training);
int sw__training_finish_places(sw_training *training);

/* --- keys and bags --- */

struct sw__bag_key *sw__key_begin(sw_training *training);
void sw__key_text(struct sw__bag_key *key, const char *text); /* NULL is not "" */
void sw__key_number(struct sw__bag_key *key, uint64_t number);
/* The item of a key, zeroed when it is new; NULL when out of memory. Valid until the next one is made. */
void *sw__bag_put(struct sw__bag *bag, const struct sw__bag_key *key, bool *fresh);
/* Its place + 1, 0 when there is none. */
uint32_t sw__bag_find(const struct sw__bag *bag, const struct sw__bag_key *key);
static inline void *sw__bag_at(const struct sw__bag *bag, size_t index)
{
    return bag->items ? bag->items + index * bag->size : NULL;
}
int sw__bag_init(struct sw__bag *bag, size_t size);
void sw__bag_free(struct sw__bag *bag);

/* --- values that nobody vouches for --- */

/* Text of a name, NULL when there is none. */
const char *sw__row_text(const sw_trace *trace, uint32_t id);
/* Ticks as ns, below 2^63. */
uint64_t sw__row_ns(const struct sw__training_source *source, uint64_t ticks);
/* The site that a row names by its index plus 1; NULL: unknown. */
const sw_training_site *sw__row_site(const struct sw__training_source *source,
                                     uint64_t index_plus_1);
void sw__least(uint64_t *into, uint64_t value); /* SW_UNKNOWN is none yet */
void sw__most(uint64_t *into, uint64_t value);

#endif
