/* The table of the monitor's sources. */
#include "watch/sources.h"

const struct sw__source *const sw__sources[] = {
    &sw__source_process,
    NULL,
};
