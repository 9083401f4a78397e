/* The reader of TOML on arbitrary bytes, as a whole file and as a table of one. */
#include "config_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sw__config_sink sink = config_checks(data, size);
    sw__toml_read((const char *)data, size, "", &sink);
    sw__toml_read((const char *)data, size, "tool.stepwatch", &sink);
    return 0;
}
