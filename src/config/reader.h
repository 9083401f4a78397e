/* Readers of configuration files. They read one flat part of a file, with lists of texts and one level of
 * tables, and step over everything else that a file of its kind may hold. */
#ifndef SW_CONFIG_READER_H
#define SW_CONFIG_READER_H

#include <stdbool.h>
#include <stddef.h>

/* Longest key and value, with the NUL. A key of ours is "schedule.warmup" at its longest. */
#define SW__CONFIG_KEY 128
#define SW__CONFIG_VALUE 4096

enum sw__config_kind {
    SW__CONFIG_SCALAR, /* text, number, truth or date, as text */
    SW__CONFIG_NULL,   /* a key without a value */
    SW__CONFIG_LIST    /* a list begins; its elements follow */
};

struct sw__config_entry {
    unsigned line;     /* from 1 */
    const char *key;   /* keys of inner tables are joined by '.' */
    const char *value; /* empty unless a scalar */
    enum sw__config_kind kind;
    bool element; /* of the list that began last */
};

struct sw__config_sink {
    void (*put)(void *arg, const struct sw__config_entry *entry);
    /* What is wrong in the part that is read; a sentence without a full stop. */
    void (*complain)(void *arg, unsigned line, const char *sentence);
    void *arg;
};

/* Reads the table `table` ("tool.stepwatch"; "" is the whole file). Text need not end with NUL, nor be TOML.
 * Whether the file has that table. */
bool sw__toml_read(const char *text, size_t length, const char *table,
                   const struct sw__config_sink *sink);
/* Reads the mapping below the key `key` at the top of the first document, likewise. */
bool sw__yaml_read(const char *text, size_t length, const char *key,
                   const struct sw__config_sink *sink);

#endif
