/* The table of the monitor's sources. */
#include "watch/sources.h"

const struct sw__source *const sw__sources[] = {
    &sw__source_process,     &sw__source_io,
    &sw__source_training,    &sw__source_status,
    &sw__source_descriptors, &sw__source_pss,
    &sw__source_cpus,        &sw__source_system,
    &sw__source_cgroup,      &sw__source_pressure,
    &sw__source_disks,       &sw__source_network,
    &sw__source_children,    NULL,
};
