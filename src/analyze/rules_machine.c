/* Rules: machine. */
#include "analyze/findings.h"

void sw__rules_machine(sw_findings *all)
{
    (void)all;
}
