/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SIGINT, SIGTERM and SIGHUP end a run in good order: the load stops, what is out is drained, results are saved. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>

/* From here on a first signal sets the flag to 1; a second one to 2, which asks for the end at once, and ends the process
 * itself where that takes longer than 0.7 s. One that was ignored (nohup) stays ignored. */
volatile sig_atomic_t *interrupt_catch(void);
/* The signals end the process again. */
void interrupt_release(void);

#endif
