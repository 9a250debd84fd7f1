/* The exit code of a trainer that was asked to save and stop, and has done so before the end of its training. */
#ifndef COMMON_EXIT_SAVED_H
#define COMMON_EXIT_SAVED_H

enum { WLB_EXIT_SAVED = 85 };

#endif
