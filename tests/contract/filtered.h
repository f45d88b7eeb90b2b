/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The contract over a filter (backends/readahead.h, backends/delay.h) that lies over another subject. */
#ifndef TESTS_FILTERED_H
#define TESTS_FILTERED_H

#include "tests/contract/contract.h"

/* `below` names an object that exists. Returns the number of failures. */
int filtered_run(const char *name, const struct backend *filter, const struct contract_subject *below);

#endif
