/* Rules: compute. */
#include "analyze/findings.h"

void sw__rules_compute(sw_findings *all)
{
    (void)all;
}
