-- The owners' verbs of the SQL face. All lengths of time are milliseconds.
SET NAMES utf8mb4 COLLATE utf8mb4_bin;

-- Ends the attempt with an answer, which every retry gets from then on. `headers`: JSON, [["Content-Type", "..."]].
CREATE OR REPLACE PROCEDURE idem_complete(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN status INT, IN headers LONGTEXT CHARACTER SET utf8mb4,
  IN body LONGBLOB, IN reference LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(1, 'complete', operation, fence, attempt, 1, '', status, headers, body, reference, 1, '', NULL);

CREATE OR REPLACE PROCEDURE idem_try_complete(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN status INT, IN headers LONGTEXT CHARACTER SET utf8mb4,
  IN body LONGBLOB, IN reference LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(0, 'complete', operation, fence, attempt, 1, '', status, headers, body, reference, 1, '', NULL);

-- Ends the attempt as not executed: a retry executes again. `basis`: 'proven' or 'declared'.
CREATE OR REPLACE PROCEDURE idem_release(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN error_code LONGTEXT CHARACTER SET utf8mb4,
  IN basis VARCHAR(255) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(1, 'release', operation, fence, attempt, 1, '', NULL, NULL, NULL, '',
  FIELD(basis, 'proven', 'declared'), error_code, NULL);

CREATE OR REPLACE PROCEDURE idem_try_release(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN error_code LONGTEXT CHARACTER SET utf8mb4,
  IN basis VARCHAR(255) CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(0, 'release', operation, fence, attempt, 1, '', NULL, NULL, NULL, '',
  FIELD(basis, 'proven', 'declared'), error_code, NULL);

-- Ends the attempt as unknown: the work may have run. `reconcile_in`: when to ask its provider; NULL: never.
CREATE OR REPLACE PROCEDURE idem_mark_unknown(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN error_code LONGTEXT CHARACTER SET utf8mb4, IN reconcile_in BIGINT,
  IN reference LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(1, 'mark_unknown', operation, fence, attempt, 1, '', NULL, NULL, NULL, reference, 1, error_code,
  reconcile_in);

CREATE OR REPLACE PROCEDURE idem_try_mark_unknown(IN operation VARCHAR(255) CHARACTER SET utf8mb4,
  IN fence BIGINT UNSIGNED, IN attempt VARCHAR(255) CHARACTER SET utf8mb4,
  IN error_code LONGTEXT CHARACTER SET utf8mb4, IN reconcile_in BIGINT, IN reference LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(0, 'mark_unknown', operation, fence, attempt, 1, '', NULL, NULL, NULL, reference, 1, error_code,
  reconcile_in);

-- Notes that a phase committed (§16), in the transaction of that phase.
CREATE OR REPLACE PROCEDURE idem_advance(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN recovery_point LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(1, 'advance', operation, fence, attempt, 1, recovery_point, NULL, NULL, NULL, '', 1, '', NULL);

CREATE OR REPLACE PROCEDURE idem_try_advance(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN recovery_point LONGTEXT CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(0, 'advance', operation, fence, attempt, 1, recovery_point, NULL, NULL, NULL, '', 1, '', NULL);

-- Extends the lease to `lease` from now.
CREATE OR REPLACE PROCEDURE idem_renew(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN lease BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(1, 'renew', operation, fence, attempt, lease, '', NULL, NULL, NULL, '', 1, '', NULL);

CREATE OR REPLACE PROCEDURE idem_try_renew(IN operation VARCHAR(255) CHARACTER SET utf8mb4, IN fence BIGINT UNSIGNED,
  IN attempt VARCHAR(255) CHARACTER SET utf8mb4, IN lease BIGINT)
SQL SECURITY DEFINER MODIFIES SQL DATA
CALL idem_owner(0, 'renew', operation, fence, attempt, lease, '', NULL, NULL, NULL, '', 1, '', NULL);

SET NAMES binary;
