/* Rules: loader. */
#include "analyze/findings.h"

void sw__rules_loader(sw_findings *all)
{
    (void)all;
}
