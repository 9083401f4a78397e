/* Rules: aside. */
#include "analyze/findings.h"

void sw__rules_aside(sw_findings *all)
{
    (void)all;
}
