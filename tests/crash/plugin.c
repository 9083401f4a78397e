/* A library that a program loads and unloads, and that records. */
#include <stdint.h>
#include <stepwatch/record.h>

SW_API uint64_t plugin_run(unsigned count);

uint64_t plugin_run(unsigned count)
{
    uint64_t value = 1;
    for (unsigned i = 0; i < count; i++) {
        SW_SCOPE("in the plugin");
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    return value;
}
