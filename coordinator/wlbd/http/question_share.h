/*
 * How many requests of a user may wait at a time for what all users share: the connection `writes` to the database,
 * which sends statements in order, a few of requests at a time (wlbd->questions), and the threads that ask Slurm. A
 * user may have thousands of connections, each with a request: without this bound one user could fill what waits, and
 * delay the requests of all others.
 */
#ifndef COORDINATOR_WLBD_HTTP_QUESTION_SHARE_H
#define COORDINATOR_WLBD_HTTP_QUESTION_SHARE_H

struct wlbd_request;

/* Before the request's first such statement or question; later ones are not counted. What is taken is given back with
 * the request. Returns -1 where its user has too many requests that wait; the request is answered 503 then. Requests of
 * root and SlurmUser are not counted: the nodes of a whole cluster may report as one of them at the same time. */
int wlbd_question_share_take(struct wlbd_request *request);

#endif
