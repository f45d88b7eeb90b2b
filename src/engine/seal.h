/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a note that stands in a target means to its backend: by it the object is known again. */
#ifndef ENGINE_SEAL_H
#define ENGINE_SEAL_H

#include "backends/backend.h"
#include "pattern/data.h"

/* `note` may be NULL; it must outlive the context. */
static inline struct seal seal_of_note(const struct data_note *note) {
    if (!note) return (struct seal){.len = 0};
    return (struct seal){.offset = note->offset + DATA_NOTE_AT + note->known_at,
                         .bytes = (const char *)note->bytes + note->known_at,
                         .len = note->known_len};
}

#endif
