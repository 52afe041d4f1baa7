-- The business rows of the payment services beside this file.
CREATE TABLE payments (
  id text PRIMARY KEY,
  amount bigint NOT NULL CHECK (amount > 0)
);
