/* The reader of TOML on arbitrary bytes, as a whole file and as a table of one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned lines;

static void put(void *arg, const struct sw__config_entry *entry)
{
    (void)arg;
    if (entry->line == 0 || entry->line > lines || strlen(entry->key) >= SW__CONFIG_KEY ||
        strlen(entry->value) >= SW__CONFIG_VALUE ||
        (entry->kind != SW__CONFIG_SCALAR && *entry->value)) {
        abort();
    }
}

static void complain(void *arg, unsigned line, const char *sentence)
{
    (void)arg;
    if (line == 0 || line > lines || !*sentence) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sw__config_sink sink = {put, complain, NULL};
    lines = 1;
    for (size_t i = 0; i < size; i++) {
        lines += data[i] == '\n';
    }
    sw__toml_read((const char *)data, size, "", &sink);
    sw__toml_read((const char *)data, size, "tool.stepwatch", &sink);
    return 0;
}
