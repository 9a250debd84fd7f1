/*
 * What is done for a near checkpoint (worker/checkpoint/near_folder.h), step by step, on one rank; save.c says when.
 * Each rank writes what it keeps to its node's folder. Then each rank sends these files to a rank of another node
 * (near_neighbour.h), from the memory that they were written from, while training goes on; that rank writes them to its
 * own node's folder, too.
 */
#ifndef WORKER_TRAIN_NEAR_SAVE_H
#define WORKER_TRAIN_NEAR_SAVE_H

#include "worker/checkpoint/near_folder.h"
#include "worker/train/checkpoint_tensors.h"
#include "worker/train/trainer.h"

/* The kind of the event of a near checkpoint that is not saved, or of an attempt that has none. */
#define WLB_NEAR_FAILED "near_checkpoint_failed"

/* Collective. Makes t->near; what it saves is in the parts, of all that the rank keeps, which must outlive it. Where a
 * folder cannot be made or is another user's, t->near is NULL: wlb_near_go_without. Returns 0 or one of the failures.
 */
int wlb_near_open(struct wlb_trainer *trainer, const struct wlb_parts *parts, struct wlb_error *error);
void wlb_near_close(struct wlb_trainer *trainer); /* t->near may be NULL */
/* Collective. Where rc, of work in these folders, is WLB_FAILED_EVERYWHERE the run goes on without near checkpoints:
 * closes them, and says and records why. Returns 0 then, else rc. */
int wlb_near_go_without(struct wlb_trainer *trainer, int rc, struct wlb_error *error);

/* Collective, at the end of the run, of which all is saved: removes its near checkpoints. A rank that cannot says so.
 * Returns 0 or WLB_FAILED_HERE. */
int wlb_near_end(struct wlb_trainer *trainer, struct wlb_error *error);

/* The folder of this node, and the messages between ranks; NULL: the run has one node. */
const char *wlb_near_folder(const struct wlb_near *near);
struct wlb_messages *wlb_near_messages(const struct wlb_near *near);

/* Names the checkpoint that the calls below are for. The parts must stay as they are from wlb_near_write_own
 * until the exchange has ended. */
void wlb_near_begin(struct wlb_near *near, int64_t step, const char *id);
/* In a thread of each node's first rank: makes the folder with the facts and the state of the packer. */
int wlb_near_prepare(struct wlb_near *near, const struct wlb_checkpoint_facts *facts, const void *packer_state,
                     size_t packer_bytes, struct wlb_error *error);
/* In a thread of each rank, once all folders are made. */
int wlb_near_write_own(struct wlb_near *near, struct wlb_error *error);
/* Starts to send and to receive, once all ranks have written; wlb_near_exchange returns 1 once that has ended, 0 before
 * and -1 after a failure, also where it takes longer than a collective may. The run must end after a failure. */
int wlb_near_start_exchange(struct wlb_near *near, struct wlb_error *error);
int wlb_near_exchange(struct wlb_near *near, struct wlb_error *error);
/* In a thread of each rank: writes what it has received. */
int wlb_near_write_received(struct wlb_near *near, struct wlb_error *error);
/* In a thread of each node's first rank: removes all other checkpoints, once this one is on all nodes, or this one. */
int wlb_near_remove_older(struct wlb_near *near, struct wlb_error *error);
int wlb_near_abandon(struct wlb_near *near, struct wlb_error *error);

#endif
