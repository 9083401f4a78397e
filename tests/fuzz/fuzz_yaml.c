/* The reader of YAML on arbitrary bytes. */
#include "config_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sw__config_sink sink = config_checks(data, size);
    sw__yaml_read((const char *)data, size, "profiling", &sink);
    return 0;
}
