/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Under valgrind everything takes 30 times as long, and what it looks for is in a few rounds as in many. */
#ifndef TESTS_ROUNDS_H
#define TESTS_ROUNDS_H

#include <stdlib.h>

static inline unsigned rounds(unsigned all, unsigned few) {
    return getenv("TEST_FEW_ROUNDS") ? few : all;
}

#endif
