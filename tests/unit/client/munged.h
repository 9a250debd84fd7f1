/* A munged of the test's own. */
#ifndef TESTS_UNIT_CLIENT_MUNGED_H
#define TESTS_UNIT_CLIENT_MUNGED_H

/* For cmocka's group set-up and tear-down. */
int munged_start(void **state);
int munged_stop(void **state);

const char *munged_socket(void);
/* The folder it lives in; removed by munged_stop with everything in it. */
const char *munged_folder(void);

#endif
