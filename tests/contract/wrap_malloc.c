/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts what this program's own code allocates: linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc, which
 * leaves the calls inside shared libraries alone. */
#include <stdatomic.h>
#include <stdlib.h>

#include "tests/contract/contract.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_ulong allocations;

void *__wrap_malloc(size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size) {
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(old, size);
}

uint64_t contract_allocations(void) {
    return atomic_load(&allocations);
}
