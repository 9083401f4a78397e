/* Rules: host. */
#include "analyze/findings.h"

void sw__rules_host(sw_findings *all)
{
    (void)all;
}
