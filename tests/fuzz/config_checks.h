/* What every reader of a configuration must keep to, whatever it reads. */
#ifndef CONFIG_CHECKS_H
#define CONFIG_CHECKS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/reader.h"

static unsigned config_lines;

static inline void config_put(void *arg, const struct sw__config_entry *entry)
{
    (void)arg;
    if (entry->line == 0 || entry->line > config_lines ||
        strlen(entry->key) >= SW__CONFIG_KEY ||
        strlen(entry->value) >= SW__CONFIG_VALUE ||
        (entry->kind != SW__CONFIG_SCALAR && *entry->value)) {
        abort();
    }
}

static inline void config_complain(void *arg, unsigned line, const char *sentence)
{
    (void)arg;
    if (line == 0 || line > config_lines || !*sentence) {
        abort();
    }
}

/* A sink that ends the program where an entry or a sentence cannot be one of that text. */
static inline struct sw__config_sink config_checks(const uint8_t *data, size_t size)
{
    config_lines = 1;
    for (size_t i = 0; i < size; i++) {
        config_lines += data[i] == '\n';
    }
    return (struct sw__config_sink){config_put, config_complain, NULL};
}

#endif
