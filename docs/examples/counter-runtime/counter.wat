;; A whole parachain runtime, as small as it can be: a counter up to 100.
;;
;; An extrinsic is a 1 and four bytes, the number to add. What a node calls is exported, what a runtime asks its host is
;; imported. Bytes go in as a pointer and a length, and out as a span: the length in the upper half of an i64, the
;; pointer in the lower. A name such as (i64.const 0x2000000400) is the span of one of the constants at the end.
(module
  (import "env" "memory" (memory 1))
  (import "env" "ext_allocator_malloc_version_1" (func $malloc (param i32) (result i32)))
  (import "env" "ext_storage_get_version_1" (func $get (param i64) (result i64)))
  (import "env" "ext_storage_set_version_1" (func $set (param i64 i64)))
  (import "env" "ext_storage_clear_version_1" (func $clear (param i64)))
  (import "env" "ext_storage_append_version_1" (func $append (param i64 i64)))
  (import "env" "ext_storage_root_version_2" (func $root (param i32) (result i64)))
  (import "env" "ext_trie_blake2_256_ordered_root_version_2" (func $ordered_root (param i64 i32) (result i32)))
  (global (export "__heap_base") i32 (i32.const 8192))

  ;; Who it is, and what its storage is called.
  (func (export "Core_version") (param i32 i32) (result i64) (i64.const 0x5200000400))
  (func (export "Metadata_metadata") (param i32 i32) (result i64) (i64.const 0x7800000452))

  ;; What its collator is to prove of the relay chain's state, beside what every collator proves.
  (func (export "KeyToIncludeInRelayProof_keys_to_prove") (param i32 i32) (result i64) (i64.const 0x2e0000052a))

  ;; A block begins: its header is kept until the end.
  (func (export "Core_initialize_block") (param $at i32) (param $length i32) (result i64)
    (call $set (i64.const 0x20000004ca) (call $span (local.get $at) (local.get $length)))
    (i64.const 0))

  ;; What the collator hands over is a list of identifiers of 8 bytes, each with data. Out of those of "sysi1337", the
  ;; validation data with the relay chain's proof, it makes an extrinsic that begins with 0. A real runtime reads it.
  (func (export "BlockBuilder_inherent_extrinsics") (param $at i32) (param $length i32) (result i64)
    (local $left i32) (local $data i32) (local $size i32) (local $out i32) (local $to i32)
    (local.set $left (call $compact (local.get $at)))
    (local.set $at (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
    (block $none
      (loop $next
        (br_if $none (i32.eqz (local.get $left)))
        (local.set $data (i32.add (local.get $at) (i32.const 8)))
        (local.set $size (call $compact (local.get $data)))
        (local.set $data (i32.add (local.get $data) (call $compact_bytes (local.get $data))))
        (if (i64.eq (i64.load (local.get $at)) (i64.const 0x3733333169737973))
          (then
            (local.set $out (call $malloc (i32.add (local.get $size) (i32.const 6))))
            (i32.store8 (local.get $out) (i32.const 4))
            (local.set $to
              (call $write_compact (i32.add (local.get $out) (i32.const 1)) (i32.add (local.get $size) (i32.const 1))))
            (i32.store8 (local.get $to) (i32.const 0))
            (call $copy (i32.add (local.get $to) (i32.const 1)) (local.get $data) (local.get $size))
            (return (call $span (local.get $out)
              (i32.sub (i32.add (i32.add (local.get $to) (i32.const 1)) (local.get $size)) (local.get $out))))))
        (local.set $at (i32.add (local.get $data) (local.get $size)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (i64.const 0x10000055d))

  ;; One extrinsic: its length, and 1 with a number to add, or 0 with what the collator handed over. A count beyond 100
  ;; is not valid, although it was written: whoever builds the block takes that back.
  (func (export "BlockBuilder_apply_extrinsic") (param $at i32) (param $length i32) (result i64)
    (local $content i32) (local $count i32)
    (local.set $content (i32.add (local.get $at) (call $compact_bytes (local.get $at))))
    (if (i32.eq (i32.load8_u (local.get $content)) (i32.const 1))
      (then
        (local.set $count (i32.add (call $count) (i32.load (i32.add (local.get $content) (i32.const 1)))))
        (i32.store (i32.const 0) (local.get $count))
        (call $set (i64.const 0x200000050a) (call $span (i32.const 0) (i32.const 4)))
        (if (i32.gt_u (local.get $count) (i32.const 100)) (then (return (i64.const 0x30000055a))))))
    (call $append (i64.const 0x20000004ea) (call $span (local.get $at) (local.get $length)))
    (i64.const 0x200000558))

  ;; The block ends: its header, with the roots of its state and of its extrinsics in their places. What was kept for
  ;; that goes first, so that it is not in the state.
  (func (export "BlockBuilder_finalize_block") (param i32 i32) (result i64)
    (local $header i64) (local $extrinsics i64) (local $roots i32)
    (local.set $header (call $kept (i64.const 0x20000004ca)))
    (local.set $extrinsics (call $kept (i64.const 0x20000004ea)))
    (if (i64.eqz (local.get $extrinsics)) (then (local.set $extrinsics (i64.const 0x10000055d))))
    (call $clear (i64.const 0x20000004ca))
    (call $clear (i64.const 0x20000004ea))
    (local.set $roots (i32.add (i32.wrap_i64 (local.get $header)) (i32.const 32)))
    (local.set $roots (i32.add (local.get $roots) (call $compact_bytes (local.get $roots))))
    (call $copy (local.get $roots) (i32.wrap_i64 (call $root (i32.const 1))) (i32.const 32))
    (call $copy
      (i32.add (local.get $roots) (i32.const 32))
      (call $ordered_root (local.get $extrinsics) (i32.const 0))
      (i32.const 32))
    (local.get $header))

  (func $count (result i32)
    (local $found i64)
    (local.set $found (call $kept (i64.const 0x200000050a)))
    (if (i64.eqz (local.get $found)) (then (return (i32.const 0))))
    (i32.load (i32.wrap_i64 (local.get $found))))

  (func $copy (param $to i32) (param $from i32) (param $length i32)
    (loop $next
      (if (local.get $length)
        (then
          (i32.store8 (local.get $to) (i32.load8_u (local.get $from)))
          (local.set $to (i32.add (local.get $to) (i32.const 1)))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))
          (local.set $length (i32.sub (local.get $length) (i32.const 1)))
          (br $next)))))

  (func $span (param $at i32) (param $length i32) (result i64)
    (i64.or (i64.extend_i32_u (local.get $at)) (i64.shl (i64.extend_i32_u (local.get $length)) (i64.const 32))))

  ;; What stands under a key, without the mark and the length in front of it; 0 where it is not there.
  (func $kept (param $key i64) (result i64)
    (local $at i32)
    (local.set $at (i32.wrap_i64 (call $get (local.get $key))))
    (if (i32.eqz (i32.load8_u (local.get $at))) (then (return (i64.const 0))))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (call $span
      (i32.add (local.get $at) (call $compact_bytes (local.get $at)))
      (call $compact (local.get $at))))

  ;; The length in front of bytes (SCALE's compact numbers below 2^30), how many bytes it takes itself, and how it is
  ;; written, which gives where it ends.
  (func $compact (param $at i32) (result i32)
    (i32.shr_u
      (i32.and
        (i32.load (local.get $at))
        (i32.shr_u
          (i32.const -1)
          (i32.sub (i32.const 32) (i32.shl (call $compact_bytes (local.get $at)) (i32.const 3)))))
      (i32.const 2)))
  (func $compact_bytes (param $at i32) (result i32)
    (i32.shl (i32.const 1) (i32.and (i32.load8_u (local.get $at)) (i32.const 3))))
  (func $write_compact (param $at i32) (param $number i32) (result i32)
    (local $mode i32)
    (local.set $mode
      (i32.add (i32.gt_u (local.get $number) (i32.const 63)) (i32.gt_u (local.get $number) (i32.const 16383))))
    (i32.store (local.get $at) (i32.or (i32.shl (local.get $number) (i32.const 2)) (local.get $mode)))
    (i32.add (local.get $at) (i32.shl (i32.const 1) (local.get $mode))))

  ;; what Core_version answers: a RuntimeVersion
  (data (i32.const 1024) "\1c\63\6f\75\6e\74\65\72\1c\63\6f\75\6e\74\65\72\01\00\00\00\01\00\00\00\01\00\00\00\10\df\6a\cb\68\99\07\60\9b\04\00\00\00\37\e3\97\fc\7c\91\f5\e4\02\00\00\00\40\fe\3a\d4\01\f8\95\9a\06\00\00\00\07\5f\8c\d3\74\35\0e\84\01\00\00\00\01\00\00\00\01")
  ;; metadata of version 14: two pallets, three storage items
  (data (i32.const 1106) "\d9\01\6d\65\74\61\0e\0c\00\00\00\05\05\00\04\00\00\05\03\00\08\00\00\02\04\00\08\18\53\79\73\74\65\6d\01\18\53\79\73\74\65\6d\08\18\48\65\61\64\65\72\00\00\08\04\00\00\28\45\78\74\72\69\6e\73\69\63\73\00\00\08\04\00\00\00\00\00\00\00\1c\43\6f\75\6e\74\65\72\01\1c\43\6f\75\6e\74\65\72\04\14\43\6f\75\6e\74\00\00\00\10\00\00\00\00\00\00\00\00\00\01\08\04\00\08")
  ;; twox128("System") twox128("Header")
  (data (i32.const 1226) "\26\aa\39\4e\ea\56\30\e0\7c\48\ae\0c\95\58\ce\f7\4b\c7\61\3c\a6\fd\0e\68\25\c7\d7\00\1e\12\f3\b2")
  ;; twox128("System") twox128("Extrinsics")
  (data (i32.const 1258) "\26\aa\39\4e\ea\56\30\e0\7c\48\ae\0c\95\58\ce\f7\39\72\81\7c\a0\62\ed\3c\62\57\44\b7\19\c0\25\c9")
  ;; twox128("Counter") twox128("Count"), where the count stands
  (data (i32.const 1290) "\e3\db\54\5d\2f\26\ce\8a\a7\8e\3e\63\67\e2\f3\5d\67\00\bd\c9\71\47\d6\2c\29\50\61\b7\ca\11\4d\4a")
  ;; a RelayProofRequest: one key, price/0 of publisher 2000
  (data (i32.const 1322) "\04\01\28\70\75\62\73\75\62\d0\07\00\00\80\d8\c3\52\b4\aa\3f\c3\47\58\6b\f8\ba\7a\88\68\86\d0\6a\82\3b\17\47\f4\3b\24\f8\a3\bc\10\83\f7\5b")
  ;; Ok(Ok(())): the extrinsic is in the block
  (data (i32.const 1368) "\00\00")
  ;; Err(Invalid(Call)): it is in no block
  (data (i32.const 1370) "\01\00\00")
  ;; an empty list
  (data (i32.const 1373) "\00"))
